// SPDX-License-Identifier: Apache-2.0
#include "formats/quantized/float_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace outrider {
namespace {

constexpr int64_t kMxfp4Group = 32;

const std::array<float, 256>& e4m3_values() {
  static const auto values = [] {
    std::array<float, 256> table;
    for (size_t bits = 0; bits < table.size(); ++bits) table[bits] = e4m3_to_f32(static_cast<uint8_t>(bits));
    return table;
  }();
  return values;
}

void write_bf16(float value, std::byte*& out) {
  const uint16_t bits = f32_to_bf16(value);
  std::memcpy(out, &bits, sizeof(bits));
  out += sizeof(bits);
}

}  // namespace

float e4m3_to_f32(uint8_t bits) {
  const int exponent = bits >> 3 & 15;
  const int mantissa = bits & 7;
  if ((bits & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                        : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

void Float8Rows::read_row(int64_t row, std::byte* out) const {
  const std::array<float, 256>& values = e4m3_values();
  const auto* numbers = reinterpret_cast<const uint8_t*>(matrix_.numbers.data()) + row * matrix_.cols;
  for (int64_t begin = 0; begin < matrix_.cols; begin += matrix_.block_cols) {
    const float scale = matrix_.scales.at(row / matrix_.block_rows, begin / matrix_.block_cols);
    const int64_t end = std::min(begin + matrix_.block_cols, matrix_.cols);
    for (int64_t i = begin; i < end; ++i) write_bf16(values[numbers[i]] * scale, out);
  }
}

// A block of mxfp4 is a scale, and bytes with number i in their low and number i + 16 in their high bits.
void Mxfp4Rows::read_row(int64_t row, std::byte* out) const {
  constexpr int64_t kBytes = kMxfp4Group / 2;
  const int64_t groups = matrix_.cols / kMxfp4Group;
  const std::byte* numbers = matrix_.numbers.data() + row * groups * kBytes;
  const auto number = [&](int64_t i) { return numbers[i / 2] >> (i % 2 * 4) & std::byte{15}; };
  for (int64_t group = 0; group < groups; ++group, numbers += kBytes) {
    *out++ = matrix_.scales[static_cast<size_t>(row * groups + group)];
    for (int64_t i = 0; i < kBytes; ++i) *out++ = number(i) | number(i + kBytes) << 4;
  }
}

}  // namespace outrider
