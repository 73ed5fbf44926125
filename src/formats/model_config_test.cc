// SPDX-License-Identifier: Apache-2.0
#include "formats/model_config.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

namespace outrider {
namespace {

// The expected bits are exact powers of two, computed in 60 decimal digits and rounded once.
TEST(AlibiSlopes, BitsAreTheSameEverywhere) {
  uint64_t all = 0;
  for (int64_t heads = 1; heads <= 64; ++heads) {
    for (const double max_bias : {8.0, 16.0}) {
      for (const float slope : alibi_slopes(heads, max_bias))
        all = all * 0x9E3779B97F4A7C15 + std::bit_cast<uint32_t>(slope);
    }
  }
  EXPECT_EQ(all, 9791028314004725900U);
  const std::vector<float> slopes = alibi_slopes(12, 8);
  EXPECT_EQ(slopes.front(), 0.5F);
  EXPECT_EQ(slopes[7], 0x1p-8F);
  EXPECT_EQ(std::bit_cast<uint32_t>(slopes[8]), 0x3F3504F3U);  // 2^-0.5
}

}  // namespace
}  // namespace outrider
