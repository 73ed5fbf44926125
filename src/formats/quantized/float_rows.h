// SPDX-License-Identifier: Apache-2.0
// Matrices of very small floating-point numbers with scales.
#pragma once

#include <cstdint>

#include "formats/quantized/integer_rows.h"
#include "tensor/tensor_view.h"

namespace outrider {

// The value of a byte in OCP's format E4M3, which has no infinities.
float e4m3_to_f32(uint8_t bits);

// A matrix [rows, cols] in E4M3; each tile of block_rows x block_cols numbers has a scale.
struct Float8Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t block_rows = 1;
  int64_t block_cols = 1;
  std::span<const std::byte> numbers = {};
  NumberTable scales = {};  // [tile of rows][tile of columns]
};

// Rows of bf16: the products of numbers and scales in f32, rounded.
class Float8Rows final : public RowSource {
 public:
  explicit Float8Rows(const Float8Matrix& matrix) : matrix_(matrix) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override {
    return matrix_.numbers.subspan(static_cast<size_t>(first_row * matrix_.cols),
                                   static_cast<size_t>(rows * matrix_.cols));
  }

 private:
  Float8Matrix matrix_;
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
