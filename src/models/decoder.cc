// SPDX-License-Identifier: Apache-2.0
#include "models/decoder.h"

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

void move_row(float* rows, int64_t dim, size_t from, size_t to) {
  std::copy_n(rows + static_cast<int64_t>(from) * dim, dim, rows + static_cast<int64_t>(to) * dim);
}

}  // namespace

Decoder::Decoder(ModelConfig config, const ModelOptions& options, DecoderWeights weights)
    : config_(std::move(config)),
      ops_(options.kernels, options.pool),
      weights_(std::move(weights)),
      attention_{.head_count = config_.head_count,
                 .kv_head_count = config_.kv_head_count,
                 .head_dim = config_.head_dim,
                 .window = config_.sliding_window,
                 .epsilon = config_.norm.epsilon,
                 .scale = static_cast<float>(config_.scales.attention)},
      whole_{.count = config_.layer_count, .skip_attention = {}, .skip_mlp = {}} {}

void Decoder::tap(FeatureTaps taps) {
  for (const int64_t layer : taps.layers) OUTRIDER_CHECK(layer >= 0 && layer <= config_.layer_count);
  taps_ = std::move(taps);
}

int64_t Decoder::feature_size() const { return taps_.count() * config_.hidden_size; }

std::span<const float> Decoder::features() {
  return {features_.data(), static_cast<size_t>(feature_rows_ * feature_size())};
}

void Decoder::embed_tokens(std::span<const TokenId> tokens, float* out) const {
  for (const TokenId token : tokens) {
    embed_token(token, out);
    out += config_.hidden_size;
  }
}

std::span<const float> Decoder::output_head(const float* states, int64_t rows) {
  logits_.reserve(rows, config_.vocab_size);
  compute_logits(states, rows);
  return {logits_.data(), static_cast<size_t>(rows * config_.vocab_size)};
}

void Decoder::normalize_output(const float* states, float* out, int64_t rows) const {
  ops_.normalize(states, weights_.final_norm, out, rows);
}

void Decoder::embed_token(TokenId token, float* out) const {
  unpack_row(weights_.embedding(), token, out);
  if (config_.scales.embedding == 1) return;
  const auto scale = static_cast<float>(config_.scales.embedding);
  for (int64_t i = 0; i < config_.hidden_size; ++i) out[i] *= scale;
}

void Decoder::compute_logits(const float* states, int64_t rows) {
  ops_.project(weights_.lm_head, states, logits_.data(), rows);
  if (config_.scales.logits != 1)
    ops_.scale(static_cast<float>(config_.scales.logits), logits_.data(), rows * config_.vocab_size);
}

KvShape Decoder::kv_shape() const {
  return {.layer_count = config_.layer_count,
          .kv_head_count = config_.kv_head_count,
          .head_dim = config_.head_dim,
          .page_count = 0};
}

SubsetOutput Decoder::forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  OUTRIDER_CHECK(layers.count >= 1 && layers.count <= config_.layer_count);
  OUTRIDER_CHECK(batch.logits_rows.size() == batch.tokens.size() && batch.resumed_rows.empty());
  return run(batch, cache, layers);
}

SubsetOutput Decoder::run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  feature_rows_ = 0;
  if (batch.rows() == 0) return {};
  OUTRIDER_CHECK(cache.shape().layer_count == config_.layer_count &&
                 cache.shape().kv_head_count == config_.kv_head_count &&
                 cache.shape().head_dim == config_.head_dim);
  const bool is_resumed = !batch.resumed_rows.empty();
  OUTRIDER_CHECK(!is_resumed || (batch.resume_layer >= 1 && batch.resume_layer < layers.count));
  captures_ = taps_.count() > 0 && !is_resumed;
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  grow(batch.rows(), wanted);
  feature_rows_ = captures_ ? batch.rows() : 0;
  list_rows(batch, !is_resumed);
  embed(batch);
  for (int64_t i = 0; i < layers.count; ++i) {
    if (is_resumed && i == batch.resume_layer) resume(batch);
    if (layers.runs_attention(i)) run_attention(batch, i, i + 1 == layers.count, cache);
    if (layers.runs_mlp(i)) run_mlp(weights_.layers[static_cast<size_t>(i)]);
  }
  if (wanted == 0 && !taps_end()) return {};
  add_and_normalize(weights_.final_norm, config_.layer_count);
  if (captures_ && taps_.final_norm) copy_feature(normed_.data(), static_cast<int64_t>(taps_.layers.size()));
  if (taps_end()) keep_wanted_outputs(batch);
  if (wanted == 0) return {};
  compute_logits(normed_.data(), wanted);
  return {.logits = {logits_.data(), static_cast<size_t>(wanted * config_.vocab_size)},
          .states = {hidden_.data(), static_cast<size_t>(wanted * config_.hidden_size)}};
}

Status Decoder::reserve(int64_t rows, int64_t logits_rows) {
  try {
    grow(rows, logits_rows);
  } catch (const std::bad_alloc&) {
    return resource_error("not enough memory for a pass over " + std::to_string(rows) + " tokens, " +
                          std::to_string(logits_rows) +
                          " of them with logits; lower the prefill chunk, the batch or the draft length");
  }
  return {};
}

void Decoder::grow(int64_t rows, int64_t logits_rows) {
  hidden_.reserve(rows, config_.hidden_size);
  normed_.reserve(rows, config_.hidden_size);
  delta_.reserve(rows, config_.hidden_size);
  rotations_.reserve(rows, config_.head_dim);
  qkv_.reserve(rows, attention_.qkv_size());
  attended_.reserve(rows, attention_.q_size());
  gate_up_.reserve(rows, 2 * config_.ffn_size);
  gated_.reserve(rows, config_.ffn_size);
  logits_.reserve(logits_rows, config_.vocab_size);
  features_.reserve(rows, feature_size());
  rows_.reserve(static_cast<size_t>(rows));
  attention_rows_.reserve(static_cast<size_t>(rows));
  for (const DecoderLayer& layer : weights_.layers) {
    for (const auto* projection : {&layer.qkv, &layer.attention_output, &layer.gate_up, &layer.down})
      ops_.reserve(*projection, rows);
  }
  ops_.reserve(weights_.lm_head, logits_rows);
}

void Decoder::list_rows(const ForwardBatch& batch, bool with_resumed) {
  rows_.clear();
  attention_rows_.clear();
  auto resumed = batch.resumed_rows.begin();
  for (int32_t row = 0; row < batch.rows(); ++row) {
    if (!with_resumed && resumed != batch.resumed_rows.end() && *resumed == row) {
      ++resumed;
      continue;
    }
    rows_.push_back(row);
    attention_rows_.push_back(attention_row(batch, row));
  }
}

void Decoder::embed(const ForwardBatch& batch) {
  is_delta_pending_ = false;
  ops_.pool().run(ops_.shares_for(batch.rows() * config_.hidden_size), [&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      fill_rotations(batch.positions[static_cast<size_t>(r)], weights_.inverse_frequency,
                     rotations_.data() + r * config_.head_dim);
    }
    const Range computed = share_of(worker, row_count());
    for (int64_t i = computed.begin; i < computed.end; ++i) {
      const TokenId token = batch.tokens[static_cast<size_t>(rows_[static_cast<size_t>(i)])];
      OUTRIDER_CHECK(token >= 0 && token < config_.vocab_size);
      embed_token(token, hidden_.data() + i * config_.hidden_size);
    }
  });
}

void Decoder::resume(const ForwardBatch& batch) {
  const int64_t dim = config_.hidden_size;
  auto resumed = static_cast<int64_t>(batch.resumed_rows.size());
  OUTRIDER_CHECK(static_cast<int64_t>(batch.resumed_states.size()) == resumed * dim);
  int64_t computed = row_count();
  // From the end, so that moving rows up in place is safe.
  for (int64_t row = batch.rows() - 1; row >= 0; --row) {
    float* hidden = hidden_.data() + row * dim;
    if (resumed > 0 && batch.resumed_rows[static_cast<size_t>(resumed - 1)] == row) {
      std::copy_n(batch.resumed_states.data() + --resumed * dim, dim, hidden);
      continue;
    }
    const float* from = hidden_.data() + --computed * dim;
    const float* delta = delta_.data() + computed * dim;
    for (int64_t i = 0; i < dim; ++i) hidden[i] = from[i] + delta[i];
  }
  OUTRIDER_CHECK(resumed == 0 && computed == 0);
  is_delta_pending_ = false;
  list_rows(batch, true);
}

void Decoder::run_attention(const ForwardBatch& batch, int64_t index, bool is_last, KvCache& cache) {
  if (row_count() == 0) return;
  const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
  const float* input = add_and_normalize(layer.attention_norm, index);
  ops_.project(layer.qkv, input, qkv_.data(), row_count());
  ops_.rotate_and_store(attention_, {.qkv = qkv_.data(),
                                     .rows = rows_,
                                     .slots = batch.slots,
                                     .rotations = rotations_.data(),
                                     .q_norm = layer.q_norm,
                                     .k_norm = layer.k_norm,
                                     .cache = &cache,
                                     .layer = index});
  if (is_last && !taps_end()) keep_wanted_rows(batch);
  if (row_count() == 0) return;
  ops_.attend(
      attention_,
      {.qkv = qkv_.data(), .rows = attention_rows_, .cache = &cache, .layer = index, .y = attended_.data()});
  ops_.project(layer.attention_output, attended_.data(), delta_.data(), row_count());
  finish_delta(layer.attention_output_norm);
}

void Decoder::run_mlp(const DecoderLayer& layer) {
  const int64_t rows = row_count();
  if (rows == 0) return;
  ops_.project(layer.gate_up, add_and_normalize(layer.mlp_norm), gate_up_.data(), rows);
  ops_.activate({.x = gate_up_.data(),
                 .y = gated_.data(),
                 .rows = rows,
                 .dim = config_.ffn_size,
                 .activation = config_.mlp.activation,
                 .is_gated = config_.mlp.is_gated});
  ops_.project(layer.down, gated_.data(), delta_.data(), rows);
  finish_delta(layer.mlp_output_norm);
}

// Once the last layer has stored its keys and values, nothing depends any more on rows without logits.
void Decoder::keep_wanted_rows(const ForwardBatch& batch) {
  size_t kept = 0;
  for (const int32_t row : batch.logits_rows) {  // ascending, so moving rows down in place is safe
    const auto from = static_cast<size_t>(row);
    if (from != kept) {
      attention_rows_[kept] = attention_rows_[from];
      move_row(qkv_.data(), attention_.qkv_size(), from, kept);
      move_row(hidden_.data(), config_.hidden_size, from, kept);
    }
    ++kept;
  }
  attention_rows_.resize(kept);
}

// As keep_wanted_rows(), but after the final norm, because features of all rows were wanted.
void Decoder::keep_wanted_outputs(const ForwardBatch& batch) {
  size_t kept = 0;
  for (const int32_t row : batch.logits_rows) {
    move_row(normed_.data(), config_.hidden_size, static_cast<size_t>(row), kept);
    move_row(hidden_.data(), config_.hidden_size, static_cast<size_t>(row), kept);
    ++kept;
  }
}

void Decoder::finish_delta(const Norm& output_norm) {
  if (!output_norm.empty()) ops_.normalize(delta_.data(), output_norm, delta_.data(), row_count());
  if (config_.scales.residual != 1)
    ops_.scale(static_cast<float>(config_.scales.residual), delta_.data(), row_count() * config_.hidden_size);
  is_delta_pending_ = true;
}

const float* Decoder::add_and_normalize(const Norm& norm, int64_t tapped_layer) {
  ops_.add_and_normalize({.x = hidden_.data(),
                          .delta = is_delta_pending_ ? delta_.data() : nullptr,
                          .norm = &norm,
                          .y = normed_.data(),
                          .rows = row_count(),
                          .dim = config_.hidden_size});
  is_delta_pending_ = false;
  const float* normed = norm.empty() ? hidden_.data() : normed_.data();
  if (tapped_layer < 0 || !captures_) return normed;
  for (size_t i = 0; i < taps_.layers.size(); ++i) {
    if (taps_.layers[i] == tapped_layer) copy_feature(hidden_.data(), static_cast<int64_t>(i));
  }
  return normed;
}

// Writes `states` [rows, hidden_size] as feature number `index` of every row.
void Decoder::copy_feature(const float* states, int64_t index) {
  const int64_t dim = config_.hidden_size;
  for (int64_t row = 0; row < row_count(); ++row)
    std::copy_n(states + row * dim, dim, features_.data() + row * feature_size() + index * dim);
}

}  // namespace outrider
