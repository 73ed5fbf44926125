// SPDX-License-Identifier: Apache-2.0
// The beginning of a pass: what the rows of a batch enter the first layer with.
#include <cmath>

#include "base/check.h"
#include "models/decoder.h"

namespace outrider {

void Decoder::embed_tokens(std::span<const TokenId> tokens, FloatAddress out) {
  if (weights_.input_projection.parts.empty()) return backend_->embed(tokens, out);
  embedded_.reserve(std::ssize(tokens), config_.token_size());
  backend_->embed(tokens, embedded_.data());
  backend_->project(weights_.input_projection, embedded_.data(), out, std::ssize(tokens));
}

void Decoder::embed(const ForwardBatch& batch) {
  tokens_.clear();
  for (const int32_t row : pass_.batch_rows()) {
    const TokenId token = batch.tokens[static_cast<size_t>(row)];
    OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
    tokens_.push_back(token);
  }
  embed_tokens(tokens_, stream_.hidden());
  if (weights_.positions) add_positions(batch);
  if (weights_.layer_inputs) compute_layer_inputs(batch);
}

void Decoder::enter() { backend_->receive_states(stream_.hidden(), pass_.rows() * config_.hidden_size); }

void Decoder::add_positions(const ForwardBatch& batch) {
  const LearnedPositions& learned = config_.learned_positions;
  positions_.clear();
  for (const int32_t row : pass_.batch_rows()) {
    positions_.push_back(learned.row_of(batch.positions[static_cast<size_t>(row)]));
  }
  backend_->add_table_rows({.table = &*weights_.positions,
                            .rows = positions_,
                            .positions = &learned,
                            .x = stream_.hidden(),
                            .y = stream_.hidden()});
}

void Decoder::compute_layer_inputs(const ForwardBatch& batch) {
  const LayerInputTable& inputs = *weights_.layer_inputs;
  const int64_t width = inputs.projection.n;
  const FloatAddress projected = projected_inputs_.data();
  embed_tokens(batch.tokens, stream_.normed());
  backend_->project(inputs.projection, stream_.normed(), projected, batch.rows());
  backend_->scale(1.0F / std::sqrt(static_cast<float>(config_.hidden_size)), projected, batch.rows() * width);
  backend_->normalize(projected, inputs.norm, projected, batch.rows() * config_.layer_count);
  backend_->add_table_rows({.table = &inputs.table,
                            .rows = batch.tokens,
                            .scale = std::sqrt(static_cast<float>(config_.layer_inputs.size)),
                            .share = 0.70710678F,  // of projection and table, which keeps the variance of one
                            .x = projected,
                            .y = layer_inputs_.data()});
}

}  // namespace outrider
