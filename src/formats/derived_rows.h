// SPDX-License-Identifier: Apache-2.0
// Matrices that are other orders of a stored one, made row by row when they are read.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tensor/tensor_view.h"

namespace outrider {

// Row i is row `first` + i * `step` of a matrix.
class SteppedRows final : public RowSource {
 public:
  SteppedRows(TensorView matrix, int64_t first, int64_t step)
      : matrix_(std::move(matrix)), first_(first), step_(step) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override;

 private:
  TensorView matrix_;
  int64_t first_;
  int64_t step_;
};

// Row i is row rows[i] of a matrix; they rise.
class ChosenRows final : public RowSource {
 public:
  ChosenRows(TensorView matrix, std::vector<int32_t> rows)
      : matrix_(std::move(matrix)), rows_(std::move(rows)) {}
  void read_row(int64_t row, std::byte* out) const override;
  std::span<const std::byte> stored(int64_t first_row, int64_t rows) const override;

 private:
  TensorView matrix_;
  std::vector<int32_t> rows_;
};

// Row i is column i of a matrix of plain numbers that are stored.
class TransposedRows final : public RowSource {
 public:
  explicit TransposedRows(TensorView matrix) : matrix_(std::move(matrix)) {}
  void read_row(int64_t row, std::byte* out) const override;
  // The bytes of a row are all over the matrix.
  std::span<const std::byte> stored(int64_t, int64_t) const override {
    return {matrix_.data, static_cast<size_t>(matrix_.bytes())};
  }

 private:
  TensorView matrix_;
};

}  // namespace outrider
