// SPDX-License-Identifier: Apache-2.0
#include "formats/interleaved_rows.h"

#include <utility>

namespace outrider {
namespace {

// A copy in which row i of the rotated part of every head is row source(i, half) of that part in `view`.
template <typename Source>
TensorView reorder_rows(const TensorView& view, const ModelConfig& config, ModelStorage* storage,
                        Source source) {
  const int64_t stated = config.ropes.front().rotated_dim;
  const int64_t rotated = stated == 0 ? config.head_dim : stated;
  const auto row_of = [&](int64_t row) {
    const int64_t within = row % config.head_dim;
    return within < rotated ? row - within + source(within, rotated / 2) : row;
  };
  return copy_rows(view, view.shape.front(), row_of, storage);
}

}  // namespace

bool is_rotated(std::string_view expected_name) {
  return expected_name.find(".q_proj.") != std::string_view::npos ||
         expected_name.find(".k_proj.") != std::string_view::npos;
}

TensorView interleave_rows(const TensorView& view, const ModelConfig& config, ModelStorage* storage) {
  return reorder_rows(view, config, storage,
                      [](int64_t row, int64_t half) { return row / 2 + (row % 2 == 0 ? 0 : half); });
}

TensorView uninterleave_rows(const TensorView& view, const ModelConfig& config, ModelStorage* storage) {
  return reorder_rows(view, config, storage,
                      [](int64_t row, int64_t half) { return row < half ? 2 * row : 2 * (row - half) + 1; });
}

void uninterleave_model(ModelStorage* storage, ModelFile* model) {
  for (auto& [name, view] : model->tensors) {
    if (!is_rotated(name)) continue;
    const TensorView interleaved = std::exchange(view, uninterleave_rows(view, model->config, storage));
    model->drop_pages(interleaved);
  }
}

}  // namespace outrider
