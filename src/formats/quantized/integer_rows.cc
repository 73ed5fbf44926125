// SPDX-License-Identifier: Apache-2.0
#include "formats/quantized/integer_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace outrider {
namespace {

constexpr int64_t kBlock = 32;  // numbers of a block of q4_0 and q8_0
constexpr int kPlaces[] = {0, 4, 1, 5, 2, 6, 3, 7};

template <typename T>
T number_at(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

bool is_half(float value) { return f16_to_f32(f32_to_f16(value)) == value; }

struct CodeRange {
  int low = 0;  // of code - zero
  int high = 0;
};

CodeRange range_of(const GroupedIntegers& matrix) {
  const int greatest_code = (1 << matrix.codes.bits) - 1;
  if (!matrix.zeros) return {-matrix.zero_offset, greatest_code - matrix.zero_offset};
  CodeRange range{greatest_code, 0};
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t group = 0; group < matrix.groups; ++group) {
      const int zero = matrix.zero(row, group);
      range.low = std::min(range.low, -zero);
      range.high = std::max(range.high, greatest_code - zero);
    }
  }
  return range;
}

bool has_half_scales(const GroupedIntegers& matrix) {
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t group = 0; group < matrix.groups; ++group) {
      if (!is_half(matrix.scale(row, group))) return false;
    }
  }
  return true;
}

DType exact_type(const GroupedIntegers& matrix) {
  const bool has_blocks = matrix.group_of.empty() && matrix.cols / matrix.groups % kBlock == 0;
  if (!has_blocks || !has_half_scales(matrix)) return DType::kF32;
  const CodeRange range = range_of(matrix);
  if (range.low >= -8 && range.high <= 7) return DType::kQ4_0;
  return range.low >= -128 && range.high <= 127 ? DType::kQ8_0 : DType::kF32;
}

// A block is a half-precision scale and its codes; see kernels/blocks/quant_blocks.h.
void write_block(DType dtype, float scale, const int* codes, std::byte* out) {
  const uint16_t half = f32_to_f16(scale);
  std::memcpy(out, &half, sizeof(half));
  out += sizeof(half);
  if (dtype == DType::kQ8_0) {
    for (int i = 0; i < kBlock; ++i) out[i] = static_cast<std::byte>(codes[i]);
    return;
  }
  for (int i = 0; i < kBlock / 2; ++i)
    out[i] = static_cast<std::byte>((codes[i] + 8) | (codes[i + kBlock / 2] + 8) << 4);
}

}  // namespace

int PackedTable::at(int64_t first, int64_t second) const {
  const int shift = bits == 4 ? 3 : 2;  // of the number of codes in a word
  const int64_t packed = packs_first ? first : second;
  const int64_t word =
      packs_first ? (first >> shift) * line_words + second : first * line_words + (second >> shift);
  const auto place = static_cast<int>(packed & ((1 << shift) - 1));
  const uint32_t shifted =
      number_at<uint32_t>(words, word) >> (bits * (is_interleaved ? kPlaces[place] : place));
  return static_cast<int>((shifted & ((1u << bits) - 1)) ^ flipped_bits);
}

float NumberTable::at(int64_t first, int64_t second) const {
  const int64_t index = first * line + second;
  if (dtype == DType::kF32) return number_at<float>(data, index);
  const auto half = number_at<uint16_t>(data, index);
  return dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
}

int GroupedIntegers::zero(int64_t row, int64_t group) const {
  if (!zeros) return zero_offset;
  const int stored_zero = groups_first ? zeros->at(group, row) : zeros->at(row, group);
  return (stored_zero + zero_offset) & ((1 << codes.bits) - 1);
}

float GroupedIntegers::scale(int64_t row, int64_t group) const {
  return groups_first ? scales.at(group, row) : scales.at(row, group);
}

IntegerRows::IntegerRows(GroupedIntegers matrix) : matrix_(std::move(matrix)), dtype_(exact_type(matrix_)) {}

void IntegerRows::read_row(int64_t row, std::byte* out) const {
  const int64_t group_size = matrix_.cols / matrix_.groups;
  for (int64_t begin = 0; begin < matrix_.cols; begin += kBlock) {
    const int64_t count = std::min(kBlock, matrix_.cols - begin);
    int codes[kBlock];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t col = begin + i;
      codes[i] = matrix_.codes_by_column ? matrix_.codes.at(col, row) : matrix_.codes.at(row, col);
    }
    if (dtype_ != DType::kF32) {
      const int64_t group = begin / group_size;
      const int zero = matrix_.zero(row, group);
      for (int& code : codes) code -= zero;
      write_block(dtype_, matrix_.scale(row, group), codes, out);
      out += block_bytes(dtype_);
      continue;
    }
    for (int64_t i = 0; i < count; ++i, out += sizeof(float)) {
      const int64_t group = matrix_.group_of.empty() ? (begin + i) / group_size : matrix_.group_of[begin + i];
      const float x = matrix_.scale(row, group) * static_cast<float>(codes[i] - matrix_.zero(row, group));
      std::memcpy(out, &x, sizeof(x));
    }
  }
}

}  // namespace outrider
