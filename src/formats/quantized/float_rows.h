// SPDX-License-Identifier: Apache-2.0
// Matrices of very small floating-point numbers with scales.
#pragma once

#include <cstdint>

#include "formats/quantized/integer_rows.h"
#include "tensor/tensor_view.h"

namespace outrider {

// A matrix [rows, cols] in E4M3; each tile of block_rows x block_cols numbers has a scale.
struct Float8Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t block_rows = 1;
  int64_t block_cols = 1;
  std::span<const std::byte> numbers = {};
  NumberTable scales = {};  // [tile of rows][tile of columns]

  const uint8_t* row(int64_t index) const {
    return reinterpret_cast<const uint8_t*>(numbers.data()) + index * cols;
  }
  float scale(int64_t at_row, int64_t at_col) const {
    return scales.at(at_row / block_rows, at_col / block_cols);
  }
  std::span<const std::byte> stored(int64_t first_row, int64_t row_count) const {
    return numbers.subspan(static_cast<size_t>(first_row * cols), static_cast<size_t>(row_count * cols));
  }
};

// Rows of f8, which has the same numbers.
class Float8Rows final : public RowSource {
 public:
  // Whether a block of f8 lies in one tile.
  static bool fits(const Float8Matrix& matrix);

  explicit Float8Rows(const Float8Matrix& matrix) : matrix_(matrix) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override {
    return matrix_.stored(first_row, rows);
  }

 private:
  Float8Matrix matrix_;
};

// Rows of bf16 of other matrices: the products of numbers and scales in f32, rounded.
class BF16Rows final : public RowSource {
 public:
  explicit BF16Rows(const Float8Matrix& matrix) : matrix_(matrix) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override {
    return matrix_.stored(first_row, rows);
  }

 private:
  Float8Matrix matrix_;
};

// A matrix of E2M1 numbers, two in a byte with the first in its low bits; 16 in a row share a scale in E4M3.
struct Nvfp4Matrix {
  int64_t cols = 0;
  std::span<const std::byte> numbers;  // [rows][cols / 2]
  std::span<const std::byte> scales;   // [rows][cols / 16]
  float factor = 1;                    // of all numbers
};

// Rows of nvfp4_f32, which has the same numbers in another order.
class Nvfp4Rows final : public RowSource {
 public:
  explicit Nvfp4Rows(const Nvfp4Matrix& matrix) : matrix_(matrix) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override {
    return matrix_.numbers.subspan(static_cast<size_t>(first_row * matrix_.cols / 2),
                                   static_cast<size_t>(rows * matrix_.cols / 2));
  }

 private:
  Nvfp4Matrix matrix_;
};

// A matrix of E2M1 numbers, two in a byte with the first in its low bits; 32 in a row share a scale in E8M0.
struct Mxfp4Matrix {
  int64_t cols = 0;
  std::span<const std::byte> numbers;  // [rows][cols / 2]
  std::span<const std::byte> scales;   // [rows][cols / 32]
};

// Rows of mxfp4, which has the same numbers in another order.
class Mxfp4Rows final : public RowSource {
 public:
  explicit Mxfp4Rows(const Mxfp4Matrix& matrix) : matrix_(matrix) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override {
    return matrix_.numbers.subspan(static_cast<size_t>(first_row * matrix_.cols / 2),
                                   static_cast<size_t>(rows * matrix_.cols / 2));
  }

 private:
  Mxfp4Matrix matrix_;
};

}  // namespace outrider
