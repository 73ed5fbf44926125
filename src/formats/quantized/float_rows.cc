// SPDX-License-Identifier: Apache-2.0
#include "formats/quantized/float_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace outrider {
namespace {

constexpr int64_t kMxfp4Group = 32, kNvfp4Group = 16;

// Codes of 4 bits, two in a byte with the first in its low bits, become bytes with number i in their low and
// number i + group / 2 in their high bits.
void write_halves(const std::byte* codes, int64_t group, std::byte*& out) {
  const auto code = [codes](int64_t i) { return codes[i / 2] >> (i % 2 * 4) & std::byte{15}; };
  for (int64_t i = 0; i < group / 2; ++i) *out++ = code(i) | code(i + group / 2) << 4;
}

const std::array<float, 256>& e4m3_values() {
  static const auto values = [] {
    std::array<float, 256> table;
    for (size_t bits = 0; bits < table.size(); ++bits) {
      const auto code = static_cast<uint8_t>(bits);
      table[bits] = is_e4m3_nan(code) ? std::numeric_limits<float>::quiet_NaN() : e4m3_to_f32(code);
    }
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

void BF16Rows::read_row(int64_t row, std::byte* out) const {
  const std::array<float, 256>& values = e4m3_values();
  const uint8_t* numbers = matrix_.row(row);
  for (int64_t begin = 0; begin < matrix_.cols; begin += matrix_.block_cols) {
    const float scale = matrix_.scale(row, begin);
    const int64_t end = std::min(begin + matrix_.block_cols, matrix_.cols);
    for (int64_t i = begin; i < end; ++i) write_bf16(values[numbers[i]] * scale, out);
  }
}

// A block of f8 is a scale and its numbers.
void Float8Rows::read_row(int64_t row, std::byte* out) const {
  const int64_t block = block_elements(DType::kF8);
  const uint8_t* numbers = matrix_.row(row);
  for (int64_t begin = 0; begin < matrix_.cols; begin += block, numbers += block) {
    const bool has_nan = std::any_of(numbers, numbers + block, is_e4m3_nan);
    const float scale = has_nan ? std::numeric_limits<float>::quiet_NaN() : matrix_.scale(row, begin);
    std::memcpy(out, &scale, sizeof(scale));
    std::memcpy(out + sizeof(scale), numbers, static_cast<size_t>(block));
    out += block_bytes(DType::kF8);
  }
}

bool Float8Rows::fits(const Float8Matrix& matrix) {
  const int64_t block = block_elements(DType::kF8);
  return matrix.cols % block == 0 && matrix.block_cols % block == 0;
}

// A block of mxfp4 is a scale and the codes of a group.
void Mxfp4Rows::read_row(int64_t row, std::byte* out) const {
  const int64_t groups = matrix_.cols / kMxfp4Group;
  for (int64_t group = row * groups; group < (row + 1) * groups; ++group) {
    *out++ = matrix_.scales[static_cast<size_t>(group)];
    write_halves(matrix_.numbers.data() + group * kMxfp4Group / 2, kMxfp4Group, out);
  }
}

// A block of nvfp4_f32 is the factor, and the scales and codes of four groups.
void Nvfp4Rows::read_row(int64_t row, std::byte* out) const {
  constexpr int64_t kTogether = 4;
  const int64_t groups = matrix_.cols / kNvfp4Group;
  for (int64_t first = row * groups; first < (row + 1) * groups; first += kTogether) {
    std::memcpy(out, &matrix_.factor, sizeof(float));
    std::memcpy(out + sizeof(float), &matrix_.scales[static_cast<size_t>(first)], kTogether);
    out += sizeof(float) + kTogether;
    for (int64_t group = first; group < first + kTogether; ++group)
      write_halves(matrix_.numbers.data() + group * kNvfp4Group / 2, kNvfp4Group, out);
  }
}

}  // namespace outrider
