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

// The head size of the layers that choose this RoPE.
int64_t head_dim_of_rope(const ModelConfig& config, int rope) {
  for (int64_t layer = 0; layer < config.layer_count; ++layer) {
    if (config.traits_of(layer).rope == rope) return config.sizes_of(layer).head_dim;
  }
  return config.head_dim;
}

}  // namespace

Decoder::Decoder(ModelConfig config, const ModelOptions& options, std::unique_ptr<LayerBackend> backend)
    : config_(std::move(config)),
      part_(options.part),
      own_layers_(options.own_layers(config_.layer_count)),
      backend_(std::move(backend)),
      weights_(backend_->weights()),
      whole_{.count = config_.layer_count, .skip_attention = {}, .skip_mlp = {}},
      woken_(static_cast<size_t>(config_.layer_count)),
      rotations_(config_.ropes.size()) {
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
  return backend_->read(features_.data(), feature_rows_ * feature_size());
}

std::span<const float> Decoder::hidden_states() {
  return backend_->read(hidden_states_.data(), hidden_state_count_ * config_.hidden_size);
}

std::span<const float> Decoder::output_head(const float* states, int64_t rows) {
  const int64_t count = rows * config_.hidden_size;
  shared_.reserve(rows, config_.hidden_size);
  logits_.reserve(rows, config_.vocab_size);
  backend_->write({states, static_cast<size_t>(count)}, shared_.data());
  compute_logits(shared_.data(), rows);
  return backend_->read(logits_.data(), rows * config_.vocab_size);
}

void Decoder::normalize_output(const float* states, float* out, int64_t rows) const {
  const std::span<const float> inputs(states, static_cast<size_t>(rows * config_.hidden_size));
  if (weights_.final_norm.empty()) {
    if (out != states) std::ranges::copy(inputs, out);
    return;
  }
  shared_.reserve(rows, config_.hidden_size);
  backend_->write(inputs, shared_.data());
  backend_->normalize(shared_.data(), weights_.final_norm, shared_.data(), rows);
  std::ranges::copy(backend_->read(shared_.data(), std::ssize(inputs)), out);
}

void Decoder::compute_logits(FloatAddress states, int64_t rows) {
  if (!weights_.output_projection.parts.empty()) {
    embedded_.reserve(rows, config_.token_size());
    backend_->project(weights_.output_projection, states, embedded_.data(), rows);
    states = embedded_.data();
  }
  backend_->project(weights_.lm_head, states, logits_.data(), rows);
  if (part_.shard.index != 0) return;  // the first shard has the logits
  const int64_t count = rows * config_.vocab_size;
  if (config_.scales.logits != 1)
    backend_->scale(static_cast<float>(config_.scales.logits), logits_.data(), count);
  if (config_.logit_softcap > 0)
    backend_->softcap(logits_.data(), count, static_cast<float>(config_.logit_softcap));
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
  const bool has_all_layers = own_layers_.begin == 0 || !part_.is_first_stage();
  OUTRIDER_CHECK(has_all_layers || (rows_.empty() && batch.resume_layer >= own_layers_.begin));
  part_.is_first_stage() ? embed(batch) : enter(batch);
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
  if (!part_.is_last_stage()) {
    backend_->send_states(add_and_normalize({}), row_count() * config_.hidden_size);
    return {};
  }
  if (wanted_.empty() && !taps_end()) return {};
  FloatAddress output = add_and_normalize(weights_.final_norm, config_.layer_count);
  if (captures_ && taps_.final_norm) copy_feature(output, static_cast<int64_t>(taps_.layers.size()));
  if (taps_end()) keep_wanted_outputs();
  if (!batch.hidden_state_rows.empty()) output = take_hidden_states(batch, output);
  if (wanted == 0) return {};
  compute_logits(output, wanted);
  return {.logits = backend_->read(logits_.data(), wanted * config_.vocab_size),
          .states = backend_->read(hidden_.data(), wanted * config_.hidden_size)};
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
  backend_->reserve(rows, logits_rows);
  for (BackendRows* states : {&hidden_, &normed_, &delta_}) states->reserve(rows, config_.hidden_size);
  if (config_.block != BlockKind::kSequential) branch_.reserve(rows, config_.hidden_size);
  if (config_.token_size() != config_.hidden_size)
    embedded_.reserve(std::max(rows, logits_rows), config_.token_size());
  for (size_t i = 0; i < ropes_.size(); ++i) rotations_[i].reserve(rows, ropes_[i].rotated());
  if (config_.query_temperature.beta != 0) query_factors_.resize(static_cast<size_t>(rows));
  for (const AttentionShape& attention : attention_) {
    qkv_.reserve(rows, attention.qkv_size());
    attended_.reserve(rows, attention.q_size());
  }
  for (const DecoderLayer& layer : weights_.layers) grow_layer(layer, rows);
  if (weights_.layer_inputs) {
    layer_inputs_.reserve(rows, weights_.layer_inputs->projection.n);
    projected_inputs_.reserve(rows, weights_.layer_inputs->projection.n);
  }
  logits_.reserve(logits_rows, config_.vocab_size);
  features_.reserve(rows, feature_size());
  for (auto* list : {&rows_, &wanted_, &tokens_, &positions_, &places_})
    list->reserve(static_cast<size_t>(rows));
  attention_rows_.reserve(static_cast<size_t>(rows));
}

void Decoder::grow_layer(const DecoderLayer& layer, int64_t rows) {
  qkv_.reserve(rows, std::max(layer.convolution.input.n, layer.delta.input.n));
  attended_.reserve(rows, std::max(layer.convolution.size, layer.delta.output.k));
  output_gates_.reserve(rows, layer.output_gate.n);
  values_.reserve(rows, config_.latent.rank != 0 ? layer.attention_output.k : 0);
  gate_up_.reserve(rows, layer.gate_up.n);
  gated_.reserve(rows, std::max(layer.down.k, config_.layer_inputs.size));
  if (layer.experts.experts.empty()) return;
  dense_.reserve(rows, config_.hidden_size);
  dense_gates_.reserve(rows, 1);
  router_inputs_.reserve(rows, config_.hidden_size);
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
  auto computed = static_cast<int32_t>(row_count());
  OUTRIDER_CHECK(std::ssize(batch.resumed_states) == std::ssize(batch.resumed_rows) * dim);
  OUTRIDER_CHECK(computed + std::ssize(batch.resumed_rows) == batch.rows());
  const FloatAddress states = add_and_normalize({});
  backend_->write(batch.resumed_states, states + computed * dim);
  // Both kinds of rows, which stand one after the other, take their places in the batch.
  places_.clear();
  auto resumed = batch.resumed_rows.begin();
  for (int32_t row = 0, next = 0; row < batch.rows(); ++row) {
    const bool resumes = resumed != batch.resumed_rows.end() && *resumed == row;
    if (resumes) ++resumed;
    places_.push_back(resumes ? computed++ : next++);
  }
  list_rows(batch, true);
  copy_states(states, places_, normed_.data());
  copy_states(normed_.data(), rows_, states);
}

void Decoder::list_wanted_rows(const ForwardBatch& batch) {
  wanted_.clear();
  std::set_union(batch.logits_rows.begin(), batch.logits_rows.end(), batch.hidden_state_rows.begin(),
                 batch.hidden_state_rows.end(), std::back_inserter(wanted_));
}

// Once the last layer has stored what later rows read, nothing depends any more on rows that are not wanted.
void Decoder::keep_wanted_rows(std::initializer_list<MovedRows> moved) {
  for (const MovedRows& rows : moved)
    backend_->copy({rows.data, rows.size, wanted_, rows.data, rows.size, rows.size});
  copy_states(hidden_.data(), wanted_, hidden_.data());
  if (config_.block == BlockKind::kParallelNorm) copy_states(normed_.data(), wanted_, normed_.data());
  size_t kept = 0;
  for (const int32_t row : wanted_) {  // ascending, so moving rows down in place is safe
    attention_rows_[kept] = attention_rows_[static_cast<size_t>(row)];
    rows_[kept++] = rows_[static_cast<size_t>(row)];
  }
  attention_rows_.resize(kept);
  rows_.resize(kept);
}

// As keep_wanted_rows(), but after the final norm, because features of all rows were wanted.
void Decoder::keep_wanted_outputs() {
  for (const BackendRows* states : {&normed_, &hidden_}) copy_states(states->data(), wanted_, states->data());
}

void Decoder::copy_states(FloatAddress from, std::span<const int32_t> rows, FloatAddress to) {
  const int64_t dim = config_.hidden_size;
  backend_->copy({from, dim, rows, to, dim, dim});
}

std::span<const int32_t> Decoder::places_of(std::span<const int32_t> rows) {
  places_.clear();
  auto next = rows.begin();
  for (size_t i = 0; i < wanted_.size() && next != rows.end(); ++i) {
    if (wanted_[i] != *next) continue;
    places_.push_back(static_cast<int32_t>(i));
    ++next;
  }
  return places_;
}

FloatAddress Decoder::take_hidden_states(const ForwardBatch& batch, FloatAddress outputs) {
  hidden_states_.reserve(std::ssize(batch.hidden_state_rows), config_.hidden_size);
  hidden_state_count_ = std::ssize(batch.hidden_state_rows);
  copy_states(outputs, places_of(batch.hidden_state_rows), hidden_states_.data());
  copy_states(outputs, places_of(batch.logits_rows), normed_.data());
  return normed_.data();
}

}  // namespace outrider
