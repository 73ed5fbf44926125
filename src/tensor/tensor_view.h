// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace outrider {

// Dimensions, outermost first; the last one is contiguous.
using Shape = std::vector<int64_t>;

// A read-only view of a stored tensor, usually in a mapped file.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* data = nullptr;

  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  // Product of all dimensions but the last.
  int64_t rows() const {
    int64_t product = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
    return product;
  }
  int64_t bytes() const { return rows() * row_bytes(dtype, cols()); }
};

}  // namespace outrider
