// SPDX-License-Identifier: Apache-2.0
#include "cli/repeated_timing.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(RepeatedTiming, TwoThatAgreeAreEnough) {
  RepeatedTiming timing;
  timing.add(10.0);
  EXPECT_FALSE(timing.is_enough());
  timing.add(10.5);
  EXPECT_TRUE(timing.is_enough());
  EXPECT_EQ(timing.min(), 10.0);
  EXPECT_NEAR(timing.spread(), 0.05, 1e-12);
}

TEST(RepeatedTiming, OneStallIsForgotten) {
  RepeatedTiming timing;
  for (const double ms : {30.0, 10.0}) timing.add(ms);
  EXPECT_FALSE(timing.is_enough());
  EXPECT_NEAR(timing.spread(), 2.0, 1e-12);
  timing.add(10.2);
  EXPECT_TRUE(timing.is_enough());
  EXPECT_NEAR(timing.spread(), 0.02, 1e-12);
}

TEST(RepeatedTiming, ABusyMachineIsNotMeasuredForEver) {
  RepeatedTiming timing;
  double ms = 100.0;
  int count = 0;
  for (; !timing.is_enough(); ++count) timing.add(ms *= 0.7);
  EXPECT_EQ(count, RepeatedTiming::kMax);
  EXPECT_NEAR(timing.spread(), 1 / 0.7 - 1, 1e-9);
}

}  // namespace
}  // namespace outrider
