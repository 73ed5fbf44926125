// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_rows.h"

#include <cstring>

namespace outrider {
namespace {

// A copy in which row i of every head is row source(i) of that head in `view`.
template <typename Source>
TensorView reorder_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage, Source source) {
  const auto row_size = static_cast<size_t>(row_bytes(view.dtype, view.shape.size() == 1 ? 1 : view.cols()));
  const int64_t rows = view.shape.front();
  Buffer& copy = storage->copies.emplace_back(static_cast<size_t>(rows) * row_size);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t within = row % head_dim;
    std::memcpy(copy.data() + static_cast<size_t>(row) * row_size,
                view.data + static_cast<size_t>(row - within + source(within)) * row_size, row_size);
  }
  return {view.dtype, view.shape, copy.data()};
}

}  // namespace

TensorView interleave_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage) {
  return reorder_rows(view, head_dim, storage,
                      [half = head_dim / 2](int64_t row) { return row / 2 + (row % 2 == 0 ? 0 : half); });
}

TensorView uninterleave_rows(const TensorView& view, int64_t head_dim, ModelStorage* storage) {
  return reorder_rows(view, head_dim, storage, [half = head_dim / 2](int64_t row) {
    return row < half ? 2 * row : 2 * (row - half) + 1;
  });
}

}  // namespace outrider
