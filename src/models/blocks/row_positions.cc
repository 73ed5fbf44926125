// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/row_positions.h"

namespace outrider {
namespace {

// The head size of the layers that choose this RoPE.
int64_t head_dim_of_rope(const ModelConfig& config, int rope) {
  for (int64_t layer = 0; layer < config.layer_count; ++layer) {
    if (config.traits_of(layer).rope == rope) return config.sizes_of(layer).head_dim;
  }
  return config.head_dim;
}

}  // namespace

RowPositions::RowPositions(const ModelConfig& config, int64_t context)
    : temperature_(config.query_temperature), rotations_(config.ropes.size()) {
  for (size_t i = 0; i < config.ropes.size(); ++i)
    ropes_.emplace_back(config.ropes[i], head_dim_of_rope(config, static_cast<int>(i)), context);
}

void RowPositions::reserve(int64_t rows) {
  for (size_t i = 0; i < ropes_.size(); ++i) {
    const auto numbers = static_cast<size_t>(rows * ropes_[i].rotated());
    if (rotations_[i].size() < numbers) rotations_[i].resize(numbers);
  }
  if (temperature_.beta != 0) query_factors_.resize(static_cast<size_t>(rows));
}

void RowPositions::place(const ForwardBatch& batch) {
  for (int64_t r = 0; r < batch.rows(); ++r) {
    const int32_t position = batch.positions[static_cast<size_t>(r)];
    for (size_t i = 0; i < ropes_.size(); ++i)
      ropes_[i].fill(position, rotations_[i].data() + r * ropes_[i].rotated());
    if (query_factors_.empty()) continue;
    query_factors_[static_cast<size_t>(r)] = query_factor(temperature_, position);
  }
}

RowRotations RowPositions::rotations(int rope) {
  if (rope == LayerTraits::kNoRope) return {};
  const RotaryEmbedding& embedding = ropes_[static_cast<size_t>(rope)];
  return {rotations_[static_cast<size_t>(rope)].data(), embedding.rotated(), &embedding};
}

QueryFactors RowPositions::query_factors(int rope) const {
  const bool rotates = rope != LayerTraits::kNoRope;
  return rotates && temperature_.without_rope ? QueryFactors() : QueryFactors{query_factors_, &temperature_};
}

}  // namespace outrider
