// SPDX-License-Identifier: Apache-2.0
#include "kernels/nibble_values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/dtype.h"

namespace outrider {
namespace {

constexpr uint16_t kInfinity = 0x7C00;
constexpr uint16_t kLargest = 0x7BF8;  // the largest finite scale of the table

TEST(NibbleValues, ScalesAreTheNearestOfTheTable) {
  for (int bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const uint16_t scale = table_scale(half);
    ASSERT_EQ(scale % 8, 0) << bits;
    ASSERT_EQ(scale & 0x8000, half & 0x8000) << bits;
    const float exact = f16_to_f32(half);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(f16_to_f32(scale))) << bits;
    } else if (std::isinf(exact) || (half & 0x7FFF) > kLargest) {
      ASSERT_EQ(scale & 0x7FFF, std::isinf(exact) ? kInfinity : kLargest) << bits;
    } else {
      const auto below = static_cast<uint16_t>(half & ~7);
      const auto above = static_cast<uint16_t>(below + 8);
      const float to_below = std::abs(exact - f16_to_f32(below));
      const float to_above = std::abs(exact - f16_to_f32(above));
      const uint16_t even = below % 16 == 0 ? below : above;
      ASSERT_EQ(scale, to_below < to_above ? below : to_above < to_below ? above : even) << bits;
    }
  }
}

TEST(NibbleValues, EveryScaleTimesEveryCode) {
  for (int set = 0; set <= static_cast<int>(NibbleValues::kOdd); ++set) {
    const auto values = static_cast<NibbleValues>(set);
    for (int scale = 0; scale <= 0xFFFF; scale += 8) {
      const uint16_t* numbers = tile_numbers(values) + scale * kTileNumbersStride;
      for (int code = 0; code < 16; ++code) {
        const float expected =
            f16_to_f32(static_cast<uint16_t>(scale)) * static_cast<float>(nibble_numbers(values)[code]);
        ASSERT_EQ(numbers[code], f32_to_bf16(expected)) << set << " " << scale << " " << code;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
