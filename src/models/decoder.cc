// SPDX-License-Identifier: Apache-2.0
#include "models/decoder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

void move_row(float* rows, int64_t dim, size_t from, size_t to) {
  std::copy_n(rows + static_cast<int64_t>(from) * dim, dim, rows + static_cast<int64_t>(to) * dim);
}

// The head size of the layers that choose this RoPE.
int64_t head_dim_of_rope(const ModelConfig& config, int rope) {
  for (int64_t layer = 0; layer < config.layer_count; ++layer) {
    if (config.traits_of(layer).rope == rope) return config.sizes_of(layer).head_dim;
  }
  return config.head_dim;
}

}  // namespace

Decoder::Decoder(ModelConfig config, const ModelOptions& options, DecoderWeights weights)
    : config_(std::move(config)),
      exchange_(options.part),
      own_layers_(options.own_layers(config_.layer_count)),
      own_tokens_(options.part.shard.of(config_.vocab_size)),
      ops_(options.kernels, options.pool, &exchange_),
      weights_(std::move(weights)),
      experts_(config_, ops_),
      whole_{.count = config_.layer_count, .skip_attention = {}, .skip_mlp = {}},
      woken_(static_cast<size_t>(config_.layer_count)),
      rotations_(config_.ropes.size()) {
  if (config_.delta.taps != 0) delta_ops_.emplace(config_, ops_);
  if (config_.latent.rank != 0) latent_ops_.emplace(config_, ops_);
  int64_t cached = 0;
  int64_t states = 0;
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    attention_.push_back(AttentionShape::of(config_, i, options.part.shard));
    const int64_t from = config_.kv_layer_of(i);
    cache_layers_.push_back(!config_.has_attention(i) ? states++
                            : config_.has_keys(i)     ? cached
                                                      : cache_layers_[static_cast<size_t>(from)]);
    if (config_.has_keys(i) && i >= own_layers_.begin && i < own_layers_.end) ++cached;
  }
  for (size_t i = 0; i < config_.ropes.size(); ++i)
    ropes_.emplace_back(config_.ropes[i], head_dim_of_rope(config_, static_cast<int>(i)), options.context);
  kv_shape_ = make_kv_shape();
}

void Decoder::tap(FeatureTaps taps) {
  for (const int64_t layer : taps.layers) OUTRIDER_CHECK(layer >= 0 && layer <= config_.layer_count);
  taps_ = std::move(taps);
}

int64_t Decoder::feature_size() const { return taps_.count() * config_.hidden_size; }

std::span<const float> Decoder::features() {
  return {features_.data(), static_cast<size_t>(feature_rows_ * feature_size())};
}

std::span<const float> Decoder::hidden_states() {
  return {hidden_states_.data(), static_cast<size_t>(hidden_state_count_ * config_.hidden_size)};
}

std::span<const float> Decoder::output_head(const float* states, int64_t rows) {
  logits_.reserve(rows, config_.vocab_size);
  compute_logits(states, rows);
  return {logits_.data(), static_cast<size_t>(rows * config_.vocab_size)};
}

void Decoder::normalize_output(const float* states, float* out, int64_t rows) const {
  if (!weights_.final_norm.empty()) return ops_.normalize(states, weights_.final_norm, out, rows);
  if (out != states) std::copy_n(states, rows * config_.hidden_size, out);
}

void Decoder::compute_logits(const float* states, int64_t rows) {
  if (!weights_.output_projection.parts.empty()) {
    tokens_.reserve(rows, config_.token_size());
    ops_.project(weights_.output_projection, states, tokens_.data(), rows);
    states = tokens_.data();
  }
  ops_.project(weights_.lm_head, states, logits_.data(), rows);
  if (exchange_.part().shard.index != 0) return;  // the first shard has the logits
  if (config_.scales.logits != 1)
    ops_.scale(static_cast<float>(config_.scales.logits), logits_.data(), rows * config_.vocab_size);
  if (config_.logit_softcap > 0)
    ops_.softcap(logits_.data(), rows * config_.vocab_size, static_cast<float>(config_.logit_softcap));
}

KvShape Decoder::make_kv_shape() const {
  KvShape shape{.kv_head_count = config_.kv_head_count,
                .head_dim = config_.head_dim,
                .page_count = 0,
                .window = config_.longest_window(),
                .values_are_keys = config_.latent.rank != 0};
  for (int64_t i = own_layers_.begin; i < own_layers_.end; ++i) {
    const AttentionShape& attention = attention_[static_cast<size_t>(i)];
    if (config_.has_keys(i)) shape.layers.push_back({attention.kv_head_count, attention.head_dim});
  }
  shape.layer_count = std::ssize(shape.layers);
  const KvHeads usual = {shape.kv_head_count, shape.head_dim};
  if (std::ranges::all_of(shape.layers, [&](const KvHeads& heads) { return heads == usual; }))
    shape.layers.clear();
  shape.states = make_state_shape();
  return shape;
}

StateShape Decoder::make_state_shape() const {
  StateShape shape;
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    if (config_.has_attention(i)) continue;
    ++shape.layer_count;
    shape.size = config_.state_size(i);
    shape.update_size = config_.update_size(i);
  }
  return shape;
}

SubsetOutput Decoder::forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  OUTRIDER_CHECK(layers.count >= 1 && layers.count <= config_.layer_count);
  OUTRIDER_CHECK(batch.logits_rows.size() == batch.tokens.size() && batch.resumed_rows.empty() &&
                 batch.hidden_state_rows.empty());
  return run(batch, cache, layers);
}

std::optional<LayerStreaming> Decoder::streaming() const {
  if (!weights_.stream) return std::nullopt;
  const WeightStream& stream = *weights_.stream;
  return LayerStreaming{.bytes = stream.plan().row_bytes,
                        .kept_bytes = stream.plan().memory,
                        .rate = stream.rate(),
                        .bytes_read = stream.bytes_read(),
                        .waited_ms = stream.waited_ms()};
}

int64_t Decoder::woken_experts() const { return std::accumulate(woken_.begin(), woken_.end(), int64_t{0}); }

int64_t Decoder::pass_bytes() const {
  int64_t bytes = weights_.streamed_bytes(0);
  for (size_t i = 0; i < woken_.size(); ++i) {
    if (woken_[i] > 0) bytes += woken_[i] * weights_.layers[i].experts.bytes_of_expert();
  }
  return bytes;
}

SubsetOutput Decoder::run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  feature_rows_ = hidden_state_count_ = 0;
  woken_.assign(static_cast<size_t>(config_.layer_count), 0);
  if (batch.rows() == 0) return {};
  OUTRIDER_CHECK(layers.count <= std::ssize(weights_.layers));
  OUTRIDER_CHECK(cache.shape().layer_count == kv_shape_.layer_count &&
                 cache.shape().kv_head_count == kv_shape_.kv_head_count &&
                 cache.shape().head_dim == kv_shape_.head_dim && cache.shape().layers == kv_shape_.layers &&
                 cache.shape().states.size == kv_shape_.states.size);
  const bool is_resumed = !batch.resumed_rows.empty();
  OUTRIDER_CHECK(!is_resumed || (batch.resume_layer >= 0 && batch.resume_layer < layers.count));
  captures_ = taps_.count() > 0 && !is_resumed;
  const auto wanted = static_cast<int64_t>(batch.logits_rows.size());
  grow(batch.rows(), wanted);
  list_wanted_rows(batch);
  feature_rows_ = captures_ ? batch.rows() : 0;
  list_rows(batch, !is_resumed || batch.resume_layer < own_layers_.begin);
  plan_states(batch, cache);
  const ModelPart& part = exchange_.part();
  const bool has_all_layers = own_layers_.begin == 0 || !part.is_first_stage();
  OUTRIDER_CHECK(has_all_layers || (rows_.empty() && batch.resume_layer >= own_layers_.begin));
  part.is_first_stage() ? embed(batch) : enter(batch);
  for (int64_t i = own_layers_.begin; i < std::min(own_layers_.end, layers.count); ++i) {
    if (is_resumed && i == batch.resume_layer) {
      resume(batch);
      plan_states(batch, cache);
    }
    if (weights_.stream && layers.runs(i)) weights_.stream->layers().acquire(i);
    const bool is_last = i + 1 == layers.count;
    const bool attends = layers.runs_attention(i) && layers.runs_attention(config_.kv_layer_of(i));
    if (attends && config_.has_attention(i)) run_attention(batch, i, is_last, cache);
    if (attends && !config_.has_attention(i)) run_recurrence(i, is_last, cache);
    const bool joins = attends && config_.block != BlockKind::kSequential;
    if (layers.runs_mlp(i)) run_mlp(i, joins);
  }
  if (!part.is_last_stage()) {
    const float* states = add_and_normalize({});
    exchange_.send_states({states, static_cast<size_t>(row_count() * config_.hidden_size)});
    return {};
  }
  if (wanted_.empty() && !taps_end()) return {};
  const float* output = add_and_normalize(weights_.final_norm, config_.layer_count);
  if (captures_ && taps_.final_norm) copy_feature(output, static_cast<int64_t>(taps_.layers.size()));
  if (taps_end()) keep_wanted_outputs();
  if (!batch.hidden_state_rows.empty()) output = take_hidden_states(batch, output);
  if (wanted == 0) return {};
  compute_logits(output, wanted);
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
  if (config_.block != BlockKind::kSequential) branch_.reserve(rows, config_.hidden_size);
  if (config_.token_size() != config_.hidden_size) {
    tokens_.reserve(std::max(rows, logits_rows), config_.token_size());
    ops_.reserve(weights_.input_projection, rows);
    ops_.reserve(weights_.output_projection, logits_rows);
  }
  for (size_t i = 0; i < ropes_.size(); ++i) rotations_[i].reserve(rows, ropes_[i].rotated());
  if (config_.query_temperature.beta != 0) query_factors_.resize(static_cast<size_t>(rows));
  for (const AttentionShape& attention : attention_) {
    qkv_.reserve(rows, attention.qkv_size());
    attended_.reserve(rows, attention.q_size());
  }
  for (const DecoderLayer& layer : weights_.layers) {
    qkv_.reserve(rows, std::max(layer.convolution.input.n, layer.delta.input.n));
    attended_.reserve(rows, std::max(layer.convolution.size, layer.delta.output.k));
    output_gates_.reserve(rows, layer.output_gate.n);
    if (latent_ops_) latent_ops_->reserve(layer.latent, rows);
    values_.reserve(rows, latent_ops_ ? layer.attention_output.k : 0);
    gate_up_.reserve(rows, layer.gate_up.n);
    gated_.reserve(rows, std::max(layer.down.k, config_.layer_inputs.size));
    for (const Projection* projection : layer.projections()) ops_.reserve(*projection, rows);
  }
  grow_experts(rows);
  if (weights_.layer_inputs) {
    layer_inputs_.reserve(rows, weights_.layer_inputs->projection.n);
    projected_inputs_.reserve(rows, weights_.layer_inputs->projection.n);
    ops_.reserve(weights_.layer_inputs->projection, rows);
  }
  logits_.reserve(logits_rows, config_.vocab_size);
  features_.reserve(rows, feature_size());
  rows_.reserve(static_cast<size_t>(rows));
  wanted_.reserve(static_cast<size_t>(rows));
  attention_rows_.reserve(static_cast<size_t>(rows));
  ops_.reserve(weights_.lm_head, logits_rows);
}

// Layers with experts have many matrices, which are not visited in every pass.
void Decoder::grow_experts(int64_t rows) {
  if (rows <= expert_rows_) return;
  for (const DecoderLayer& layer : weights_.layers) {
    if (layer.experts.experts.empty()) continue;
    experts_.reserve(layer.experts, rows);
    dense_.reserve(rows, config_.hidden_size);
    dense_gates_.reserve(rows, 1);
    router_inputs_.reserve(rows, config_.hidden_size);
  }
  expert_rows_ = rows;
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

std::span<const float> Decoder::query_factors_of(int64_t layer) const {
  const bool rotates = config_.traits_of(layer).rope != LayerTraits::kNoRope;
  return rotates && config_.query_temperature.without_rope ? std::span<const float>() : query_factors_;
}

void Decoder::plan_states(const ForwardBatch& batch, KvCache& cache) {
  if (kv_shape_.states.layer_count > 0) states_.build(batch, rows_, cache.states());
}

RowRotations Decoder::rotations_of(int64_t layer) {
  const int rope = config_.traits_of(layer).rope;
  if (rope == LayerTraits::kNoRope) return {};
  return {rotations_[static_cast<size_t>(rope)].data(), ropes_[static_cast<size_t>(rope)].rotated()};
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
    if (from != hidden) std::copy_n(from, dim, hidden);
    const float* delta = delta_.data() + computed * dim;
    for (int64_t i = 0; i < dim && is_delta_pending_; ++i) hidden[i] += delta[i];
  }
  OUTRIDER_CHECK(resumed == 0 && computed == 0);
  is_delta_pending_ = false;
  list_rows(batch, true);
}

void Decoder::list_wanted_rows(const ForwardBatch& batch) {
  wanted_.clear();
  std::set_union(batch.logits_rows.begin(), batch.logits_rows.end(), batch.hidden_state_rows.begin(),
                 batch.hidden_state_rows.end(), std::back_inserter(wanted_));
}

// Once the last layer has stored what later rows read, nothing depends any more on rows that are not wanted.
void Decoder::keep_wanted_rows(std::initializer_list<MovedRows> moved) {
  size_t kept = 0;
  for (const int32_t row : wanted_) {  // ascending, so moving rows down in place is safe
    const auto from = static_cast<size_t>(row);
    if (from != kept) {
      attention_rows_[kept] = attention_rows_[from];
      rows_[kept] = rows_[from];
      for (const MovedRows& rows : moved) move_row(rows.data, rows.size, from, kept);
      move_row(hidden_.data(), config_.hidden_size, from, kept);
      if (config_.block == BlockKind::kParallelNorm)
        move_row(normed_.data(), config_.hidden_size, from, kept);
    }
    ++kept;
  }
  attention_rows_.resize(kept);
  rows_.resize(kept);
}

// As keep_wanted_rows(), but after the final norm, because features of all rows were wanted.
void Decoder::keep_wanted_outputs() {
  size_t kept = 0;
  for (const int32_t row : wanted_) {
    move_row(normed_.data(), config_.hidden_size, static_cast<size_t>(row), kept);
    move_row(hidden_.data(), config_.hidden_size, static_cast<size_t>(row), kept);
    ++kept;
  }
}

const float* Decoder::take_hidden_states(const ForwardBatch& batch, const float* outputs) {
  const int64_t dim = config_.hidden_size;
  hidden_states_.reserve(std::ssize(batch.hidden_state_rows), dim);
  auto state = batch.hidden_state_rows.begin();
  auto logits = batch.logits_rows.begin();
  float* with_logits = normed_.data();
  for (const int32_t row : wanted_) {  // ascending, so moving rows down in place is safe
    if (state != batch.hidden_state_rows.end() && *state == row) {
      std::copy_n(outputs, dim, hidden_states_.data() + hidden_state_count_++ * dim);
      ++state;
    }
    if (logits != batch.logits_rows.end() && *logits == row) {
      if (with_logits != outputs) std::copy_n(outputs, dim, with_logits);
      with_logits += dim;
      ++logits;
    }
    outputs += dim;
  }
  return normed_.data();
}

}  // namespace outrider
