// SPDX-License-Identifier: Apache-2.0
#include "sampling/distribution.h"

#include <gtest/gtest.h>

#include <limits>

namespace outrider {
namespace {

TEST(IsProper, AcceptsDistributions) {
  EXPECT_TRUE(is_proper({{4}, {1.0}}));
  EXPECT_TRUE(is_proper({{0, 2, 9}, {0.25, 0.0, 0.75}}));
  EXPECT_TRUE(is_proper({{0, 1}, {0.5f, 0.5f + 1e-7}}));
}

TEST(IsProper, RefusesWhatIsNoDistribution) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(is_proper({}));
  EXPECT_FALSE(is_proper({{0, 1}, {1.0}}));
  EXPECT_FALSE(is_proper({{0, 1}, {0.0, 0.0}}));
  EXPECT_FALSE(is_proper({{0, 1}, {0.5, 0.4}}));
  EXPECT_FALSE(is_proper({{0, 1}, {1.0, 1.0}}));
  EXPECT_FALSE(is_proper({{0, 1}, {0.5, nan}}));
  EXPECT_FALSE(is_proper({{0, 1}, {0.5, infinity}}));
  EXPECT_FALSE(is_proper({{0, 1}, {1.5, -0.5}}));
  EXPECT_FALSE(is_proper({{1, 0}, {0.5, 0.5}}));
  EXPECT_FALSE(is_proper({{1, 1}, {0.5, 0.5}}));
  EXPECT_FALSE(is_proper({{-1, 1}, {0.5, 0.5}}));
}

TEST(Probability, IsZeroForTokensOutsideTheDistribution) {
  const Distribution distribution{{2, 5, 7}, {0.2, 0.3, 0.5}};
  EXPECT_EQ(probability(distribution, 2), 0.2);
  EXPECT_EQ(probability(distribution, 7), 0.5);
  EXPECT_EQ(probability(distribution, 0), 0.0);
  EXPECT_EQ(probability(distribution, 6), 0.0);
  EXPECT_EQ(probability(distribution, 8), 0.0);
}

}  // namespace
}  // namespace outrider
