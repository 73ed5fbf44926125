// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("q7_k"), std::nullopt);
}

TEST(DType, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide))));
    } else {
      ASSERT_EQ(f32_to_f16(wide), half);
    }
    const float brain = bf16_to_f32(half);
    if (!std::isnan(brain)) {
      ASSERT_EQ(f32_to_bf16(brain), half);
    }
  }
}

// Between two neighbouring halves the nearer wins, and the even one on a tie.
TEST(DType, HalfRoundsToNearestEven) {
  for (uint16_t half = 0; half < 0x7BFF; ++half) {
    const double low = f16_to_f32(half);
    const double high = f16_to_f32(half + 1);
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(f32_to_f16(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), half + 1);
  }
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
}

TEST(DType, EveryE4m3SurvivesTheRoundTrip) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto code = static_cast<uint8_t>(bits);
    if (is_e4m3_nan(code)) continue;
    EXPECT_EQ(f32_to_e4m3(e4m3_to_f32(code)), code);
  }
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9F);
  EXPECT_EQ(e4m3_to_f32(0x08), 0x1p-6F);
  EXPECT_EQ(e4m3_to_f32(0xB8), -1.0F);
  EXPECT_EQ(e4m3_to_f32(0x7E), 448.0F);
}

TEST(DType, E4m3RoundsToNearestEven) {
  for (uint8_t code = 0; code < 0x7E; ++code) {
    const float middle = (e4m3_to_f32(code) + e4m3_to_f32(code + 1)) / 2;
    ASSERT_EQ(f32_to_e4m3(middle), code % 2 == 0 ? code : code + 1);
    ASSERT_EQ(f32_to_e4m3(-std::nextafter(middle, 0.0F)), code | 0x80);
    ASSERT_EQ(f32_to_e4m3(std::nextafter(middle, 1e9F)), code + 1);
  }
  EXPECT_EQ(f32_to_e4m3(1e30F), 0x7E);
  EXPECT_EQ(f32_to_e4m3(-HUGE_VALF), 0xFF);
  EXPECT_TRUE(is_e4m3_nan(f32_to_e4m3(NAN)));
}

}  // namespace
}  // namespace outrider
