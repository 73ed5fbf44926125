// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/by_batch_size.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

bool is_known(double value) { return value > 0.0; }

TEST(ByBatchSize, SizesBetweenPowersOfTwoShareOne) {
  ByBatchSize<double> known;
  known[4.0] = 1.0;
  EXPECT_EQ(known[7.0], 1.0);
  EXPECT_EQ(known[3.0], 0.0);
  EXPECT_EQ(known[8.0], 0.0);
  known[0.0] = 2.0;  // nobody grows: like one
  EXPECT_EQ(known[1.0], 2.0);
  known[1e6] = 3.0;  // beyond the largest class
  EXPECT_EQ(known[2e6], 3.0);
}

TEST(ByBatchSize, TheNearestKnownStandsInForTheUnknown) {
  ByBatchSize<double> known;
  EXPECT_EQ(known.nearest(8.0, is_known), nullptr);
  known[32.0] = 32.0;
  EXPECT_EQ(*known.nearest(1.0, is_known), 32.0);
  EXPECT_EQ(*known.nearest(1e6, is_known), 32.0);
  known[2.0] = 2.0;
  EXPECT_EQ(*known.nearest(8.0, is_known), 2.0) << "as near as 32, and smaller";
  EXPECT_EQ(*known.nearest(16.0, is_known), 32.0);
  known[8.0] = 8.0;
  EXPECT_EQ(*known.nearest(15.0, is_known), 8.0);
}

}  // namespace
}  // namespace outrider
