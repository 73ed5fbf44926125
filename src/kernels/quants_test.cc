// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "kernels/kernel_test_data.h"
#include "kernels/quants_small.h"

namespace outrider {
namespace {

std::vector<std::byte> read_golden(const std::string& name) {
  std::ifstream file(std::string(OUTRIDER_SOURCE_DIR "/tests/data/quants/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

Floats read_floats(const std::string& name) {
  const std::vector<std::byte> bytes = read_golden(name);
  Floats floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

// This is a second reading of the format's description, number by number and in double precision.
double half_at(const uint8_t* p) {
  const int bits = p[0] + 256 * p[1];
  const int exponent = bits / 1024 % 32;
  const double mantissa = bits % 1024;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits >= 32768 ? -magnitude : magnitude;
}

int bits_at(const uint8_t* p, int first_bit, int count) {
  int value = 0;
  for (int i = 0; i < count; ++i) value += ((p[(first_bit + i) / 8] >> ((first_bit + i) % 8)) & 1) << i;
  return value;
}

double expected_q4_q5(const uint8_t* block, int i, bool five_bits) {
  const int group = i / 32;
  const uint8_t* scales = block + 4;
  const int scale = group < 4 ? bits_at(scales + group, 0, 6)
                              : bits_at(scales + group + 4, 0, 4) + 16 * bits_at(scales + group - 4, 6, 2);
  const int min = group < 4 ? bits_at(scales + group + 4, 0, 6)
                            : bits_at(scales + group + 4, 4, 4) + 16 * bits_at(scales + group, 6, 2);
  const uint8_t* codes = block + (five_bits ? 48 : 16) + i / 64 * 32;
  int code = bits_at(codes + i % 32, group % 2 * 4, 4);
  if (five_bits) code += 16 * bits_at(block + 16 + i % 32, group, 1);
  return half_at(block) * scale * code - half_at(block + 2) * min;
}

double expected_q6_k(const uint8_t* block, int i) {
  const int in_half = i % 128;
  const int low = bits_at(block + i / 128 * 64 + in_half % 64, in_half / 64 * 4, 4);
  const int high = bits_at(block + 128 + i / 128 * 32 + in_half % 32, in_half / 32 * 2, 2);
  const int scale = static_cast<int8_t>(block[192 + i / 16]);
  return half_at(block + 208) * scale * (low + 16 * high - 32);
}

double expected_number(DType dtype, const uint8_t* block, int i) {
  switch (dtype) {
    case DType::kF32: {
      float value;
      std::memcpy(&value, block, sizeof(value));
      return value;
    }
    case DType::kF16:
      return half_at(block);
    case DType::kBF16: {
      const int exponent = bits_at(block, 7, 8);
      const double magnitude =
          std::ldexp(bits_at(block, 0, 7) + (exponent > 0 ? 128 : 0), std::max(exponent, 1) - 134);
      return bits_at(block, 15, 1) != 0 ? -magnitude : magnitude;
    }
    case DType::kQ8_0:
      return half_at(block) * static_cast<int8_t>(block[2 + i]);
    case DType::kQ4_0:
      return half_at(block) * (bits_at(block + 2 + i % 16, i / 16 * 4, 4) - 8);
    case DType::kQ4_K:
      return expected_q4_q5(block, i, false);
    case DType::kQ5_K:
      return expected_q4_q5(block, i, true);
    case DType::kQ6_K:
      return expected_q6_k(block, i);
    case DType::kF8: {
      float scale;
      std::memcpy(&scale, block, sizeof(scale));
      const int bits = block[4 + i], exponent = bits >> 3 & 15;
      const double magnitude = std::ldexp(bits % 8 + (exponent > 0 ? 8 : 0), std::max(exponent, 1) - 10);
      return scale * ((bits & 0x80) != 0 ? -magnitude : magnitude);
    }
    case DType::kI8:
      return static_cast<int8_t>(block[0]);  // the scale stands before the row
    default:
      return std::nan("");  // compared only with the reference package
  }
}

class QuantTest : public testing::TestWithParam<DType> {};
class FormatTest : public testing::TestWithParam<DType> {};

TEST_P(FormatTest, DequantizeFollowsTheFormat) {
  const DType dtype = GetParam();
  constexpr int64_t kElements = 2048;
  const StoredMatrix matrix = random_matrix(dtype, 1, kElements, 5);
  const Floats values = matrix.values();
  const int64_t block = block_elements(dtype);
  for (int64_t i = 0; i < kElements; ++i) {
    const auto* row = reinterpret_cast<const uint8_t*>(matrix.bytes.data());
    float row_scale = 1;
    if (dtype == DType::kI8) std::memcpy(&row_scale, row, sizeof(row_scale));
    const uint8_t* bytes = row + row_header_bytes(dtype) + i / block * block_bytes(dtype);
    const double expected = row_scale * expected_number(dtype, bytes, static_cast<int>(i % block));
    // Differences of products round on the scale of the products, at most 63 * 31 steps of a scale below
    // 2e-4.
    ASSERT_NEAR(values[i], expected, std::abs(expected) * 2e-7 + (dtype == DType::kF32 ? 0 : 5e-8)) << i;
  }
}

TEST_P(QuantTest, DequantizeMatchesTheReferencePackage) {
  const DType dtype = GetParam();
  if (dtype == DType::kF32 || dtype == DType::kNVFP4F || dtype == DType::kF8 || dtype == DType::kI8)
    return;  // types without a file format here
  const std::string name(dtype_name(dtype));
  const std::vector<std::byte> blocks = read_golden(name + ".blocks");
  const Floats expected = read_floats(name + ".values");
  Floats values(expected.size());
  ASSERT_EQ(static_cast<int64_t>(blocks.size()), row_bytes(dtype, static_cast<int64_t>(values.size())));
  dequantize_row(dtype, blocks.data(), values.data(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Types, FormatTest,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                                         DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kF8, DType::kI8),
                         [](const auto& param_info) { return std::string(dtype_name(param_info.param)); });
INSTANTIATE_TEST_SUITE_P(Types, QuantTest, testing::ValuesIn(kAllDTypes),
                         [](const auto& param_info) { return std::string(dtype_name(param_info.param)); });

TEST(Quantize, MatchesTheReferencePackageByteForByte) {
  const Floats input = read_floats("input.f32");
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                      DType::kQ5_1, DType::kMXFP4}) {
    const std::vector<std::byte> expected = read_golden(std::string(dtype_name(dtype)) + ".quantized");
    std::vector<std::byte> blocks(expected.size());
    ASSERT_EQ(static_cast<int64_t>(blocks.size()), row_bytes(dtype, static_cast<int64_t>(input.size())));
    quantize_row(dtype, input.data(), blocks.data(), static_cast<int64_t>(input.size()));
    for (size_t i = 0; i < blocks.size(); ++i)
      ASSERT_EQ(blocks[i], expected[i]) << dtype_name(dtype) << " byte " << i;
  }
}

// The nearest number of E4M3, and half of the last place of the largest at most.
TEST(Quantize, F8IsNearest) {
  const Floats input = random_floats(1280, 4, 0.05F);
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(DType::kF8, 1280)));
  quantize_row(DType::kF8, input.data(), row.data(), 1280);
  Floats output(1280);
  dequantize_row(DType::kF8, row.data(), output.data(), 1280);
  for (size_t i = 0; i < input.size(); ++i) {
    float scale;
    std::memcpy(&scale, &row[i / 128 * 132], sizeof(scale));
    float nearest = HUGE_VALF;
    for (int bits = 0; bits < 256; ++bits) {
      if (is_e4m3_nan(static_cast<uint8_t>(bits))) continue;
      nearest = std::min(nearest, std::fabs(scale * e4m3_to_f32(static_cast<uint8_t>(bits)) - input[i]));
    }
    ASSERT_NEAR(std::fabs(output[i] - input[i]), nearest, nearest * 1e-4F) << i;
  }
}

TEST(Quantize, NumbersThatAreNotFiniteGiveDefinedCodes) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    for (DType dtype :
         {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIQ4_NL}) {
      Floats input = random_floats(32, 3);
      input[7] = bad;
      std::vector<std::byte> block(static_cast<size_t>(block_bytes(dtype)));
      quantize_row(dtype, input.data(), block.data(), 32);
      Floats output(32);
      dequantize_row(dtype, block.data(), output.data(), 32);
      if (std::isinf(bad)) {
        EXPECT_FALSE(std::isfinite(output[7]));
      }
    }
  }
}

TEST(Quantize, Iq4CloseToTheBestOfAllScales) {
  const int8_t* numbers = nibble_numbers(NibbleValues::kIq4);
  const auto squared_error = [&](const Floats& x, float d) {
    double error = 0;
    for (const float value : x) {
      float nearest = HUGE_VALF;
      for (int code = 0; code < 16; ++code)
        nearest = std::min(nearest, std::fabs(value - d * static_cast<float>(numbers[code])));
      error += static_cast<double>(nearest) * nearest;
    }
    return error;
  };
  double total = 0, total_of_best = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Floats x = random_floats(32, seed);
    BlockIQ4_NL block;
    quantize_block(x.data(), block);
    double best = squared_error(x, 0);
    for (float d = -0.05F; d < 0.05F; d += 0.0001F) best = std::min(best, squared_error(x, d));
    total += squared_error(x, f16_to_f32(block.d));
    total_of_best += best;
    Floats restored(32);
    dequantize_row(DType::kIQ4_NL, reinterpret_cast<const std::byte*>(&block), restored.data(), 32);
    double error = 0;
    for (size_t i = 0; i < x.size(); ++i) error += std::pow(static_cast<double>(x[i]) - restored[i], 2);
    EXPECT_NEAR(error, squared_error(x, f16_to_f32(block.d)), 1e-6) << seed;  // every code is the nearest
  }
  EXPECT_LT(total, 1.02 * total_of_best);
}

}  // namespace
}  // namespace outrider
