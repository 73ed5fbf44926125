// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernel_test_data.h"

namespace outrider {
namespace {

Floats round_trip(DType dtype, const Floats& x) {
  const auto elements = static_cast<int64_t>(x.size());
  std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(dtype, elements)));
  quantize_row(dtype, x.data(), blocks.data(), elements);
  Floats y(x.size());
  dequantize_row(dtype, blocks.data(), y.data(), elements);
  return y;
}

double squared_error(const Floats& x, const Floats& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (static_cast<double>(x[i]) - y[i]) * (x[i] - y[i]);
  return sum;
}

// Root mean square of the error over the root mean square of the numbers.
double relative_error(DType dtype, const Floats& x) {
  return std::sqrt(squared_error(x, round_trip(dtype, x)) / squared_error(x, Floats(x.size())));
}

// On such numbers llama.cpp's quantize_row_q4_K_ref reaches 0.0714 and quantize_row_q6_K_ref 0.0177.
TEST(QuantsK, NoWorseThanTheReferenceQuantiser) {
  const Floats normal = random_floats(256 * 1000, 3);
  EXPECT_LT(relative_error(DType::kQ4_K, normal), 0.0705);
  EXPECT_LT(relative_error(DType::kQ6_K, normal), 0.0168);
}

// The least squared error a group can have with codes low..high and this step and offset.
double group_error(const float* x, int count, double step, double offset, int low, int high) {
  double error = 0;
  for (int i = 0; i < count; ++i) {
    const double code = step == 0 ? 0 : std::clamp<double>(std::nearbyint((x[i] - offset) / step), low, high);
    error += (x[i] - offset - step * code) * (x[i] - offset - step * code);
  }
  return error;
}

TEST(QuantsK, Q6CloseToTheBestOfAllScales) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Floats x = random_floats(256, seed);
    double largest = 0;
    for (const float value : x) largest = std::max(largest, std::fabs(static_cast<double>(value)));
    double best = std::numeric_limits<double>::infinity();
    for (double share = 0.8; share < 1.2; share += 0.01) {
      const double d = share * largest / 32 / 128;
      double error = 0;
      for (int group = 0; group < 16; ++group) {
        double least = std::numeric_limits<double>::infinity();
        for (int scale = -128; scale <= 127; ++scale) {
          least = std::min(least, group_error(x.data() + group * 16, 16, d * scale, 0, -32, 31));
        }
        error += least;
      }
      best = std::min(best, error);
    }
    EXPECT_LT(squared_error(x, round_trip(DType::kQ6_K, x)), best * 1.06) << seed;
  }
}

TEST(QuantsK, Q4CloseToTheBestOfAllScalesAndMinima) {
  const Floats x = random_floats(256, 9);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  double best = std::numeric_limits<double>::infinity();
  for (double share = 0.75; share < 1.1; share += 0.05) {
    for (double min_share = 0.75; min_share < 1.1; min_share += 0.05) {
      const double d = share * (*high - *low) / 15 / 63, dmin = min_share * -*low / 63;
      double error = 0;
      for (int group = 0; group < 8; ++group) {
        double least = std::numeric_limits<double>::infinity();
        for (int scale = 0; scale < 64; ++scale) {
          for (int min = 0; min < 64; ++min) {
            least = std::min(least, group_error(x.data() + group * 32, 32, d * scale, -dmin * min, 0, 15));
          }
        }
        error += least;
      }
      best = std::min(best, error);
    }
  }
  EXPECT_LT(squared_error(x, round_trip(DType::kQ4_K, x)), best * 1.06);
}

class QuantsKTest : public testing::TestWithParam<DType> {};

TEST_P(QuantsKTest, NumbersOfABlockComeBack) {
  const Floats values = random_matrix(GetParam(), 1, 256 * 64, 7).values();
  EXPECT_LT(relative_error(GetParam(), values), GetParam() == DType::kQ6_K ? 0.006 : 0.03);
}

TEST_P(QuantsKTest, UnusualBlocks) {
  EXPECT_EQ(round_trip(GetParam(), Floats(256, 0)), Floats(256, 0));
  for (const float constant : {1.0F, -1.0F, 3e-4F, -2e4F}) {
    EXPECT_LT(relative_error(GetParam(), Floats(256, constant)), 0.02) << constant;
  }
  for (const float scale : {1e-38F, 1e-12F, 1e30F}) {  // beyond half precision: small or large, never wild
    for (const float value : round_trip(GetParam(), random_floats(256, 5, scale))) {
      EXPECT_TRUE(std::isfinite(value)) << scale;
    }
  }
  Floats outlier = random_floats(256, 6, 1e-3F);
  outlier[100] = 50;
  EXPECT_NEAR(round_trip(GetParam(), outlier)[100], 50, 0.5);
}

TEST_P(QuantsKTest, NumbersThatAreNotFiniteShow) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Floats x = random_floats(512, 4);
    x[9] = bad;
    const Floats y = round_trip(GetParam(), x);
    EXPECT_TRUE(std::isnan(y[9]));
    EXPECT_TRUE(std::isfinite(y[256]));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, QuantsKTest, testing::Values(DType::kQ4_K, DType::kQ6_K),
                         [](const auto& param_info) { return std::string(dtype_name(param_info.param)); });

}  // namespace
}  // namespace outrider
