// SPDX-License-Identifier: Apache-2.0
// Matrices of small integers in groups with a scale each, as GPTQ, AWQ and compressed-tensors pack them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/stored_tensor.h"
#include "tensor/tensor_view.h"

namespace outrider {

// A table [first, second] of unsigned integers of 4 or 8 bits in 32-bit words, which neighbours of one of the
// dimensions share. `words` has the words of the whole table.
struct PackedTable {
  const std::byte* words = nullptr;
  int64_t line_words = 0;  // words of one index of the first dimension that words have
  int bits = 4;
  bool packs_first = false;     // whether neighbours of the first dimension share a word, or of the second
  bool is_interleaved = false;  // AWQ's order: number 0 to 7 of a word at places 0, 4, 1, 5, 2, 6, 3, 7
  uint32_t flipped_bits = 0;    // exclusive or with each number

  int at(int64_t first, int64_t second) const;
};

// A table of F32, F16 or BF16 numbers.
struct NumberTable {
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;
  int64_t line = 0;  // numbers per index of the first dimension

  float at(int64_t first, int64_t second) const;
};

// A matrix [rows, cols]: x[row][col] = scale * (code - zero), with scale and zero of the group of the column.
struct GroupedIntegers {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t groups = 1;            // of a row
  PackedTable codes = {};        // [row][col], or [col][row]
  bool codes_by_column = false;  // whether columns are the first dimension of `codes`
  std::optional<PackedTable> zeros =
      {};                              // [row][group], or [group][row]; nullopt: every zero is `zero_offset`
  int zero_offset = 0;                 // added to zeros, within the bits of a code
  NumberTable scales = {};             // [row][group], or [group][row]
  bool groups_first = false;           // whether groups are the first dimension of `zeros` and `scales`
  std::vector<int32_t> group_of = {};  // [cols], where columns of a group do not follow one another
  std::span<const std::byte> stored = {};  // the bytes of `codes`

  int zero(int64_t row, int64_t group) const;
  float scale(int64_t row, int64_t group) const;
};

// The rows of a matrix, made when they are read, as the smallest type that holds them exactly: q4_0, q8_0 or
// else f32. With f32, x is rounded once if its scale has more than half precision. Precondition: tables have
// the sizes that the fields state; entries of group_of are groups.
class IntegerRows final : public RowSource {
 public:
  explicit IntegerRows(GroupedIntegers matrix);

  DType dtype() const { return dtype_; }
  void read_row(int64_t row, std::byte* out) const override;
  // Codes of a row may lie apart from each other, so these are the bytes of all rows.
  std::span<const std::byte> stored(int64_t, int64_t) const override { return matrix_.stored; }

 private:
  GroupedIntegers matrix_;
  DType dtype_;
};

}  // namespace outrider
