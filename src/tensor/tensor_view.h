// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace outrider {

// Dimensions, outermost first; the last one is contiguous.
using Shape = std::vector<int64_t>;

// "[2, 3]"
std::string shape_text(std::span<const int64_t> shape);

// Rows that are made when they are read, such as rows of a matrix in another format's quantisation.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Writes the bytes of one row.
  virtual void read_row(int64_t row, std::byte* out) const = 0;
  // The bytes that most of these rows are made of.
  virtual std::span<const std::byte> stored(int64_t first_row, int64_t rows) const = 0;
};

// A read-only view of a tensor. Its data are stored, usually in a mapped file, or have a source of rows.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* data = nullptr;    // nullptr: `source` makes the rows
  const RowSource* source = nullptr;  // outlives the view
  int64_t first_row = 0;              // of `source`

  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  // Product of all dimensions but the last.
  int64_t rows() const {
    int64_t product = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
    return product;
  }
  int64_t bytes() const { return rows() * row_bytes(dtype, cols()); }

  // A part of a matrix.
  TensorView rows_from(int64_t begin, int64_t count) const {
    TensorView part = *this;
    part.shape.front() = count;
    if (data != nullptr) part.data += begin * row_bytes(dtype, cols());
    part.first_row += begin;
    return part;
  }
  // The part with this index of the first dimension.
  TensorView element(int64_t index) const {
    TensorView part = *this;
    part.shape.erase(part.shape.begin());
    if (data != nullptr) part.data += index * part.bytes();
    part.first_row += index * part.rows();
    return part;
  }
  // The bytes of a row, which `made` holds if a source makes them.
  const std::byte* row(int64_t index, std::vector<std::byte>& made) const {
    const int64_t size = row_bytes(dtype, cols());
    if (data != nullptr) return data + index * size;
    made.resize(static_cast<size_t>(size));
    source->read_row(first_row + index, made.data());
    return made.data();
  }
};

}  // namespace outrider
