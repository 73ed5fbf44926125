// SPDX-License-Identifier: Apache-2.0
#include "base/fading_line.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(FadingLine, FindsTheLineOfItsPairs) {
  FadingLine line(24, /*smoothing=*/1);
  EXPECT_EQ(line.slope(), 0.0);
  for (int i = 0; i < 100; ++i) line.learn(10.0 * (i % 7), 3.0 + 0.5 * 10.0 * (i % 7));
  EXPECT_NEAR(line.slope(), 0.5, 0.01);
  EXPECT_NEAR(line.ms_of(100.0), 53.0, 1.0);
}

TEST(FadingLine, CountsThatHardlyDifferMakeLittleSlope) {
  FadingLine line(24, /*smoothing=*/10);
  for (int i = 0; i < 100; ++i) line.learn(20.0 + i % 2, i % 2 == 0 ? 1.0 : 9.0);
  EXPECT_LT(line.slope(), 0.05);
  EXPECT_NEAR(line.ms_of(40.0), 5.0, 1.5);
}

TEST(FadingLine, OldPairsFade) {
  FadingLine line(8, /*smoothing=*/1);
  for (int i = 0; i < 50; ++i) line.learn(i % 10, 100.0);
  for (int i = 0; i < 50; ++i) line.learn(i % 10, 1.0);
  EXPECT_NEAR(line.mean_ms(), 1.0, 0.2);
  line.limit_weight(1.0);
  line.learn(5.0, 51.0);
  EXPECT_NEAR(line.mean_ms(), 26.0, 0.2);
}

TEST(FadingLine, NoTimeIsNegative) {
  FadingLine line(24, /*smoothing=*/1);
  for (int i = 0; i < 20; ++i) line.learn(i % 5, 10.0 - 2.0 * (i % 5));
  EXPECT_EQ(line.slope(), 0.0);
  FadingLine rising(24, 1);
  for (int i = 0; i < 20; ++i) rising.learn(20.0 + i % 5, 1.0 + 4.0 * (i % 5));
  EXPECT_EQ(rising.ms_of(0.0), 0.0);
}

}  // namespace
}  // namespace outrider
