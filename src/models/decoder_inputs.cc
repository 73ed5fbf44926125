// SPDX-License-Identifier: Apache-2.0
// The beginning of a pass: what the rows of a batch enter the first layer with.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "models/decoder.h"

namespace outrider {

void Decoder::embed_tokens(std::span<const TokenId> tokens, float* out) const {
  const bool projects = !weights_.input_projection.parts.empty();
  const auto rows = std::ssize(tokens);
  if (projects) tokens_.reserve(rows, config_.token_size());
  float* embedded = projects ? tokens_.data() : out;
  for (int64_t i = 0; i < rows; ++i)
    embed_token(tokens[static_cast<size_t>(i)], embedded + i * config_.token_size());
  complete_embedding(tokens, embedded);
  if (projects) ops_.project(weights_.input_projection, embedded, out, rows);
}

void Decoder::embed_token(TokenId token, float* out) const {
  if (token < own_tokens_.begin || token >= own_tokens_.end) return;
  unpack_row(weights_.embedding(), token - own_tokens_.begin, out);
  if (config_.scales.embedding == 1) return;
  const auto scale = static_cast<float>(config_.scales.embedding);
  for (int64_t i = 0; i < config_.token_size(); ++i) out[i] *= scale;
}

void Decoder::complete_embedding(std::span<const TokenId> tokens, float* embedded) const {
  const Shard& shard = exchange_.part().shard;
  if (shard.is_whole()) return;
  const std::vector<Range> cut = shard.cut(config_.vocab_size);
  std::vector<int> owners;
  for (const TokenId token : tokens) {
    const auto owner = std::ranges::find_if(cut, [&](const Range& range) { return token < range.end; });
    owners.push_back(static_cast<int>(owner - cut.begin()));
  }
  exchange_.share_rows(owners, embedded, config_.token_size());
}

void Decoder::embed(const ForwardBatch& batch) {
  is_delta_pending_ = false;
  const OperationTimer timer = ops_.time("embedding");
  const bool projects = !weights_.input_projection.parts.empty();
  float* embedded = projects ? tokens_.data() : hidden_.data();
  ops_.pool().run(ops_.shares_for(batch.rows() * config_.hidden_size), [&](Worker worker) {
    place_rows(batch, share_of(worker, batch.rows()));
    const Range computed = share_of(worker, row_count());
    for (int64_t i = computed.begin; i < computed.end; ++i) {
      const TokenId token = batch.tokens[static_cast<size_t>(rows_[static_cast<size_t>(i)])];
      OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
      embed_token(token, embedded + i * config_.token_size());
    }
  });
  if (!exchange_.part().shard.is_whole()) {
    std::vector<TokenId> tokens;
    for (const int32_t row : rows_) tokens.push_back(batch.tokens[static_cast<size_t>(row)]);
    complete_embedding(tokens, embedded);
  }
  if (projects) ops_.project(weights_.input_projection, embedded, hidden_.data(), row_count());
  if (weights_.positions) add_positions(batch);
  if (weights_.layer_inputs) compute_layer_inputs(batch);
}

void Decoder::enter(const ForwardBatch& batch) {
  is_delta_pending_ = false;
  place_rows(batch, {0, batch.rows()});
  exchange_.receive_states({hidden_.data(), static_cast<size_t>(row_count() * config_.hidden_size)});
}

void Decoder::add_positions(const ForwardBatch& batch) {
  const LearnedPositions& learned = config_.learned_positions;
  const int64_t dim = config_.hidden_size;
  ops_.pool().run(ops_.shares_for(row_count() * dim), [&](Worker worker) {
    const Range share = share_of(worker, row_count());
    for (int64_t i = share.begin; i < share.end; ++i) {
      const int64_t position = batch.positions[static_cast<size_t>(rows_[static_cast<size_t>(i)])];
      // Drafts may reach beyond the context; they are never committed.
      const int64_t row = learned.offset + std::min(position, learned.count - 1);
      float* learned_row = delta_.data() + i * dim;
      unpack_row(*weights_.positions, row, learned_row);
      for (int64_t d = 0; d < dim; ++d) hidden_.data()[i * dim + d] += learned_row[d];
    }
  });
}

void Decoder::compute_layer_inputs(const ForwardBatch& batch) {
  const LayerInputTable& inputs = *weights_.layer_inputs;
  const int64_t size = config_.layer_inputs.size;
  const int64_t width = inputs.projection.n;
  float* projected = projected_inputs_.data();
  embed_tokens(batch.tokens, normed_.data());
  ops_.project(inputs.projection, normed_.data(), projected, batch.rows());
  ops_.scale(1.0F / std::sqrt(static_cast<float>(config_.hidden_size)), projected, batch.rows() * width);
  ops_.normalize(projected, inputs.norm, projected, batch.rows() * config_.layer_count);
  const float table_scale = std::sqrt(static_cast<float>(size));
  constexpr float kShare = 0.70710678F;  // of projection and table, which keeps the variance of one
  ops_.pool().run(ops_.shares_for(batch.rows() * width), [&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      float* row = layer_inputs_.data() + r * width;
      unpack_row(inputs.table, batch.tokens[static_cast<size_t>(r)], row);
      for (int64_t i = 0; i < width; ++i) row[i] = (projected[r * width + i] + row[i] * table_scale) * kShare;
    }
  });
}

void Decoder::place_rows(const ForwardBatch& batch, Range rows) {
  const QueryTemperature& temperature = config_.query_temperature;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int32_t position = batch.positions[static_cast<size_t>(r)];
    for (size_t i = 0; i < ropes_.size(); ++i)
      ropes_[i].fill(position, rotations_[i].data() + r * ropes_[i].rotated());
    if (query_factors_.empty()) continue;
    const auto periods = static_cast<float>((position + temperature.offset) / temperature.original_context);
    query_factors_[static_cast<size_t>(r)] = 1 + static_cast<float>(temperature.beta) * std::log1p(periods);
  }
}

}  // namespace outrider
