// SPDX-License-Identifier: Apache-2.0
#include "models/decoder.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

std::vector<const Projection*> adaptable(const DecoderWeights& weights) {
  std::vector<const Projection*> products;
  for (const LayerBlocks& layer : weights.layers) {
    for (const auto* block : {&layer.mixer, &layer.mlp}) {
      const std::vector<const Projection*> own = (*block)->adaptable();
      products.insert(products.end(), own.begin(), own.end());
    }
  }
  return products;
}

}  // namespace

Decoder::Decoder(ModelConfig config, const ModelOptions& options, std::unique_ptr<LayerBackend> backend)
    : config_(std::move(config)),
      part_(options.part),
      own_layers_(options.own_layers(config_.layer_count)),
      backend_(std::move(backend)),
      weights_(backend_->weights()),
      adapters_(*options.kernels, adaptable(weights_)),
      whole_{.count = config_.layer_count, .skip_attention = {}, .skip_mlp = {}},
      active_experts_(static_cast<size_t>(config_.layer_count)),
      pass_(config_, options.context, *backend_),
      stream_(config_, *backend_),
      embedded_(*backend_),
      features_(*backend_),
      logits_(*backend_),
      projected_inputs_(*backend_),
      layer_inputs_(*backend_),
      hidden_states_(*backend_) {
  scratch_sizes_.assign(2, config_.layer_inputs.size);
  for (const LayerBlocks& layer : weights_.layers) {
    for (const auto* block : {&layer.mixer, &layer.mlp}) {
      const std::vector<int64_t> sizes = (*block)->scratch();
      scratch_sizes_.resize(std::max(scratch_sizes_.size(), sizes.size()));
      for (size_t i = 0; i < sizes.size(); ++i) scratch_sizes_[i] = std::max(scratch_sizes_[i], sizes[i]);
    }
  }
  pass_.use_adapters(adapters_);
  place_in_cache();
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

std::span<const float> Decoder::logits() {
  if (logit_count_ == 0) return {};
  return backend_->read(logits_.data(), logit_count_ * config_.vocab_size);
}

std::span<const float> Decoder::logits_at(int64_t row) {
  std::span<const float>& read = read_logits_.at(static_cast<size_t>(row));
  if (read.empty()) read = backend_->read(logits_.data() + row * config_.vocab_size, config_.vocab_size);
  return read;
}

FloatAddress Decoder::output_head(FloatAddress states, int64_t rows) {
  logits_.reserve(rows, config_.vocab_size);
  compute_logits(states, rows);
  return logits_.data();
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

void Decoder::place_in_cache() {
  const KvHeads usual = {config_.kv_head_count, config_.head_dim};
  KvShape& shape = kv_shape_;
  shape = {.kv_head_count = usual.count, .head_dim = usual.dim, .page_count = 0};
  bool sees_all = false;
  for (int64_t i = 0; i < config_.layer_count; ++i) {
    const BlockCache cache = layer_at(i).mixer->cache();
    const int64_t from = config_.kv_layer_of(i);
    shape.values_are_keys |= cache.values_are_keys;
    sees_all |= cache.reads_entries && cache.window == 0;
    shape.window = std::max(shape.window, cache.window);
    if (cache.state_size > 0) {
      cache_layers_.push_back(shape.states.layer_count++);
      shape.states.size = cache.state_size;
      shape.states.update_size = cache.update_size;
    } else {
      cache_layers_.push_back(from == i ? std::ssize(shape.layers)
                                        : cache_layers_[static_cast<size_t>(from)]);
    }
    if (cache.heads && i >= own_layers_.begin && i < own_layers_.end) shape.layers.push_back(*cache.heads);
  }
  if (sees_all) shape.window = 0;
  shape.layer_count = std::ssize(shape.layers);
  if (std::ranges::all_of(shape.layers, [&](const KvHeads& heads) { return heads == usual; }))
    shape.layers.clear();
}

bool Decoder::is_own(const KvShape& shape) const {
  return shape.layer_count == kv_shape_.layer_count && shape.kv_head_count == kv_shape_.kv_head_count &&
         shape.head_dim == kv_shape_.head_dim && shape.layers == kv_shape_.layers &&
         shape.states.size == kv_shape_.states.size;
}

SubsetOutput Decoder::forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  OUTRIDER_CHECK(layers.count >= 1 && layers.count <= config_.layer_count);
  OUTRIDER_CHECK(batch.logits_rows.size() == batch.tokens.size() && batch.resumed_rows.empty() &&
                 batch.hidden_state_rows.empty());
  run(batch, cache, layers);
  return {.logits = logits(), .states = backend_->read(stream_.hidden(), logit_count_ * config_.hidden_size)};
}

void Decoder::forward_layer(const ForwardBatch& batch, KvCache& cache, int64_t index, int32_t first_entry,
                            FloatAddress states) {
  OUTRIDER_CHECK(index >= 0 && index < config_.layer_count && is_own(cache.shape()));
  feature_rows_ = hidden_state_count_ = logit_count_ = 0;
  active_experts_.assign(static_cast<size_t>(config_.layer_count), 0);
  if (batch.rows() == 0) return;
  captures_ = false;
  grow(batch.rows(), 0);
  pass_.begin(batch, cache, keeps_states());
  pass_.list_rows(true, first_entry);
  stream_.begin();
  const int64_t dim = config_.hidden_size;
  backend_->copy_strided({states, dim, stream_.hidden(), dim, batch.rows(), dim});
  run_mixer(index, true);
  run_mlp(index, config_.block != BlockKind::kSequential);
  finish(batch);
}

std::optional<LayerStreaming> Decoder::streaming() const {
  if (!weights_.stream) return std::nullopt;
  const WeightStream& stream = *weights_.stream;
  return LayerStreaming{.bytes = stream.plan().row_bytes,
                        .kept_bytes = stream.plan().memory,
                        .layers = std::ranges::count(stream.plan().layers.streamed, true),
                        .experts = stream.expert_count(),
                        .kept_experts = stream.plan().kept_experts,
                        .rate = stream.rate(),
                        .bytes_read = stream.bytes_read(),
                        .waited_ms = stream.waited_ms()};
}

int64_t Decoder::active_experts() const {
  return std::accumulate(active_experts_.begin(), active_experts_.end(), int64_t{0});
}

int64_t Decoder::pass_bytes() const {
  int64_t bytes = weights_.shared_bytes();
  for (size_t i = 0; i < active_experts_.size(); ++i) {
    if (active_experts_[i] > 0) bytes += active_experts_[i] * weights_.layers[i].mlp->part_bytes();
  }
  return bytes;
}

void Decoder::run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  feature_rows_ = hidden_state_count_ = logit_count_ = 0;
  active_experts_.assign(static_cast<size_t>(config_.layer_count), 0);
  if (batch.rows() == 0) return;
  can_repeat(batch, cache) ? repeat(batch, cache, layers) : compute(batch, cache, layers);
  read_logits_.assign(static_cast<size_t>(logit_count_), {});
  if (const Status intact = weights_.memory.check(); !intact.ok()) throw ReadFailure(intact.error());
}

void Decoder::compute(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  begin(batch, cache, layers);
  run_layers(batch, layers);
  if (part_.is_last_stage()) return finish(batch);
  backend_->send_states(stream_.normalize({}, pass_.rows()), pass_.rows() * config_.hidden_size);
}

void Decoder::begin(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) {
  OUTRIDER_CHECK(layers.count <= std::ssize(weights_.layers));
  OUTRIDER_CHECK(is_own(cache.shape()));
  const bool is_resumed = !batch.resumed_rows.empty();
  OUTRIDER_CHECK(!is_resumed || (batch.resume_layer >= 0 && batch.resume_layer < layers.count));
  captures_ = taps_.count() > 0 && !is_resumed;
  grow(batch.rows(), std::ssize(batch.logits_rows));
  feature_rows_ = captures_ ? batch.rows() : 0;
  pass_.begin(batch, cache, keeps_states());
  pass_.list_rows(!is_resumed || batch.resume_layer < own_layers_.begin);
  const bool has_all_layers = own_layers_.begin == 0 || !part_.is_first_stage();
  OUTRIDER_CHECK(has_all_layers || (pass_.rows() == 0 && batch.resume_layer >= own_layers_.begin));
  stream_.begin();
  part_.is_first_stage() ? embed(batch) : enter();
}

void Decoder::run_layers(const ForwardBatch& batch, const LayerSubset& layers) {
  for (int64_t i = own_layers_.begin; i < std::min(own_layers_.end, layers.count); ++i) {
    if (!batch.resumed_rows.empty() && i == batch.resume_layer) resume(batch);
    if (weights_.stream && layers.runs(i)) weights_.stream->layers().acquire(i);
    const bool mixes = layers.runs_attention(i) && layers.runs_attention(config_.kv_layer_of(i));
    if (mixes) run_mixer(i, i + 1 == layers.count);
    if (layers.runs_mlp(i)) run_mlp(i, mixes && config_.block != BlockKind::kSequential);
  }
}

void Decoder::finish(const ForwardBatch& batch) {
  if (pass_.wanted().empty() && !taps_end()) return;
  FloatAddress output = normalize_input(weights_.final_norm, config_.layer_count);
  if (captures_ && taps_.final_norm) copy_feature(output, static_cast<int64_t>(taps_.layers.size()));
  if (taps_end()) keep_wanted_outputs();
  if (!batch.hidden_state_rows.empty()) output = take_hidden_states(batch, output);
  logit_count_ = std::ssize(batch.logits_rows);
  if (logit_count_ > 0) compute_logits(output, logit_count_);
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
  pass_.reserve(rows);
  pass_.reserve_scratch(rows, scratch_sizes_);
  stream_.reserve(rows);
  if (config_.token_size() != config_.hidden_size)
    embedded_.reserve(std::max(rows, logits_rows), config_.token_size());
  if (weights_.layer_inputs) {
    layer_inputs_.reserve(rows, weights_.layer_inputs->projection.n);
    projected_inputs_.reserve(rows, weights_.layer_inputs->projection.n);
  }
  logits_.reserve(logits_rows, config_.vocab_size);
  read_logits_.reserve(static_cast<size_t>(logits_rows));
  features_.reserve(rows, feature_size());
  for (auto* list : {&tokens_, &positions_, &places_}) list->reserve(static_cast<size_t>(rows));
}

void Decoder::resume(const ForwardBatch& batch) {
  const int64_t dim = config_.hidden_size;
  auto computed = static_cast<int32_t>(pass_.rows());
  OUTRIDER_CHECK(std::ssize(batch.resumed_states) == std::ssize(batch.resumed_rows) * dim);
  OUTRIDER_CHECK(computed + std::ssize(batch.resumed_rows) == batch.rows());
  const FloatAddress states = stream_.normalize({}, pass_.rows());
  backend_->write(batch.resumed_states, states + computed * dim);
  // Both kinds of rows, which stand one after the other, take their places in the batch.
  places_.clear();
  auto resumed = batch.resumed_rows.begin();
  for (int32_t row = 0, next = 0; row < batch.rows(); ++row) {
    const bool resumes = resumed != batch.resumed_rows.end() && *resumed == row;
    if (resumes) ++resumed;
    places_.push_back(resumes ? computed++ : next++);
  }
  pass_.list_rows(true);
  copy_states(states, places_, stream_.normed());
  copy_states(stream_.normed(), pass_.batch_rows(), states);
}

// As BlockPass::keep_wanted(), but after the final norm, because features of all rows were wanted.
void Decoder::keep_wanted_outputs() {
  for (const FloatAddress states : {stream_.normed(), stream_.hidden()})
    copy_states(states, pass_.wanted(), states);
}

void Decoder::copy_states(FloatAddress from, std::span<const int32_t> rows, FloatAddress to) {
  const int64_t dim = config_.hidden_size;
  backend_->copy({from, dim, rows, to, dim, dim});
}

std::span<const int32_t> Decoder::places_of(std::span<const int32_t> rows) {
  places_.clear();
  const std::span<const int32_t> wanted = pass_.wanted();
  auto next = rows.begin();
  for (size_t i = 0; i < wanted.size() && next != rows.end(); ++i) {
    if (wanted[i] != *next) continue;
    places_.push_back(static_cast<int32_t>(i));
    ++next;
  }
  return places_;
}

FloatAddress Decoder::take_hidden_states(const ForwardBatch& batch, FloatAddress outputs) {
  hidden_states_.reserve(std::ssize(batch.hidden_state_rows), config_.hidden_size);
  hidden_state_count_ = std::ssize(batch.hidden_state_rows);
  copy_states(outputs, places_of(batch.hidden_state_rows), hidden_states_.data());
  copy_states(outputs, places_of(batch.logits_rows), stream_.normed());
  return stream_.normed();
}

}  // namespace outrider
