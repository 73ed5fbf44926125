// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/head_layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace outrider {

int64_t HeadLayer::bytes() const {
  WeightList list{.projections = {}, .norms = {&attention_norm, &mlp_norm}, .numbers = {}};
  AttentionWeights::list(list);
  MlpWeights::list(list);
  return list.bytes();
}

Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          HeadLayer& layer) {
  if (place.has_input_norm)
    OUTRIDER_RETURN_IF_ERROR(load_norm(loader, config.norm, place.prefix + "input_layernorm",
                                       place.input_size, layer.attention_norm));
  OUTRIDER_RETURN_IF_ERROR(load_norm(loader, config.norm, place.prefix + "post_attention_layernorm",
                                     config.hidden_size, layer.mlp_norm));
  OUTRIDER_RETURN_IF_ERROR(load_attention(loader, config, place, layer));
  return load_mlp(loader, config, {place.prefix + "mlp.", "", config.ffn_size, config.mlp.bias}, layer);
}

void detect_layer_variant(const HeadFile& head, const std::string& prefix, ModelConfig& config) {
  const auto has = [&](const std::string& name) { return head.tensors.contains(prefix + name); };
  config.qkv_bias = has("self_attn.q_proj.bias");
  config.output_bias = has("self_attn.o_proj.bias");
  config.mlp.bias = has("mlp.gate_proj.bias");
  config.qk_norm = has("self_attn.q_norm.weight") ? QkNorm::kHead : QkNorm::kNone;
}

void append_layer_tensors(const ModelConfig& config, const LayerPlace& place,
                          std::vector<HeadTensor>& tensors) {
  const auto add = [&](const std::string& name, Shape shape) {
    tensors.push_back({.name = place.prefix + name, .shape = std::move(shape)});
  };
  const auto add_matrix = [&](const std::string& name, int64_t n, int64_t k, bool bias) {
    add(name + ".weight", {n, k});
    if (bias) add(name + ".bias", {n});
  };
  const int64_t hidden = config.hidden_size;
  const int64_t q_size = config.head_count * config.head_dim;
  const int64_t kv_size = config.kv_head_count * config.head_dim;
  if (place.has_input_norm) add("input_layernorm.weight", {place.input_size});
  add_matrix("self_attn.q_proj", q_size, place.input_size, config.qkv_bias);
  add_matrix("self_attn.k_proj", kv_size, place.input_size, config.qkv_bias);
  add_matrix("self_attn.v_proj", kv_size, place.input_size, config.qkv_bias);
  if (config.qk_norm != QkNorm::kNone) {
    add("self_attn.q_norm.weight", {config.head_dim});
    add("self_attn.k_norm.weight", {config.head_dim});
  }
  add_matrix("self_attn.o_proj", hidden, q_size, config.output_bias);
  add("post_attention_layernorm.weight", {hidden});
  add_matrix("mlp.gate_proj", config.ffn_size, hidden, config.mlp.bias);
  add_matrix("mlp.up_proj", config.ffn_size, hidden, config.mlp.bias);
  add_matrix("mlp.down_proj", hidden, config.ffn_size, config.mlp.bias);
}

void append_layer_tensors(const ModelConfig& config, std::span<const LayerPlace> places,
                          std::vector<HeadTensor>& tensors) {
  for (const LayerPlace& place : places) append_layer_tensors(config, place, tensors);
}

Status load_layers(WeightLoader& loader, const ModelConfig& config, std::span<const LayerPlace> places,
                   std::vector<HeadLayer>& layers) {
  layers.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    OUTRIDER_RETURN_IF_ERROR(load_decoder_layer(loader, config, places[i], layers[i]));
  return {};
}

void add_one(std::vector<float>& norm) {
  for (float& weight : norm) weight += 1.0f;
}

void add_one_to_norms(HeadLayer& layer) {
  for (auto* norm : {&layer.attention_norm.weight, &layer.q_norm, &layer.k_norm, &layer.mlp_norm.weight})
    add_one(*norm);
}

HeadLayers::HeadLayers(const ModelConfig& config, LayerBackend& backend, ThreadPool* pool)
    : backend_(backend),
      pool_(pool),
      shape_(AttentionShape::of(config, 0)),
      hidden_size_(config.hidden_size),
      rope_(config.ropes.front(), config.head_dim, /*context=*/0) {}

KvShape HeadLayers::kv_shape(int64_t layer_count) const {
  return {.layer_count = layer_count, .kv_head_count = shape_.kv_head_count, .head_dim = shape_.head_dim};
}

void HeadLayers::reserve(int64_t rows, std::span<const HeadLayer> layers) {
  const auto rotations = static_cast<size_t>(rows * rope_.rotated());
  if (rotations_.size() < rotations) rotations_.resize(rotations);
  normed_.reserve(rows, hidden_size_);
  qkv_.reserve(rows, shape_.qkv_size());
  attended_.reserve(rows, shape_.q_size());
  delta_.reserve(rows, hidden_size_);
  rows_.reserve(static_cast<size_t>(rows));
  attention_rows_.reserve(static_cast<size_t>(rows));
  for (const HeadLayer& layer : layers) {
    gate_up_.reserve(rows, layer.gate_up.n);
    gated_.reserve(rows, layer.down.k);
    for (const auto* projection :
         {&layer.qkv, &layer.kv, &layer.attention_output, &layer.gate_up, &layer.down})
      backend_.reserve_product(*projection, rows);
  }
}

void HeadLayers::begin(const ForwardBatch& batch, KvCache& cache, int32_t first_entry) {
  batch_ = &batch;
  cache_ = &cache;
  reserve(batch.rows(), {});
  rows_.resize(static_cast<size_t>(batch.rows()));
  std::iota(rows_.begin(), rows_.end(), 0);
  attention_rows_.clear();
  for (const int32_t row : rows_) attention_rows_.push_back(attention_row(batch, row));
  if (first_entry > 0) hiding_.hide_before(first_entry, attention_rows_);
  constexpr int64_t kRowsWorthSharing = 32;
  pool_->run(batch.rows() < kRowsWorthSharing ? 1 : pool_->size(), [&](Worker worker) {
    const Range share = share_of(worker, batch.rows());
    for (int64_t r = share.begin; r < share.end; ++r) {
      rope_.fill(batch.positions[static_cast<size_t>(r)], rotations_.data() + r * rope_.rotated());
    }
  });
}

void HeadLayers::reserve_hiding(int64_t rows, int64_t tree_rows, int64_t entries) {
  hiding_.reserve(rows, tree_rows, entries);
}

LayerBackend::Attention HeadLayers::attention_of(const AttentionShape& shape, const HeadLayer& layer,
                                                 int64_t index, FloatAddress qkv) const {
  return {.shape = &shape,
          .q_norm = layer.q_norm,
          .k_norm = layer.k_norm,
          .cache = cache_,
          .layer = index,
          .qkv = qkv};
}

void HeadLayers::store(const HeadLayer& layer, int64_t index, FloatAddress input) {
  OUTRIDER_CHECK(rows() == std::ssize(rows_));
  const LayerBackend::Attention attention = attention_of(shape_, layer, index, qkv_.data());
  backend_.project(layer.qkv, input, qkv_.data(), rows());
  backend_.rotate_and_store(attention, places());
}

void HeadLayers::store_context(const HeadLayer& layer, int64_t index, FloatAddress input) {
  AttentionShape keys = shape_;
  keys.head_count = 0;
  const LayerBackend::Attention attention = attention_of(keys, layer, index, qkv_.data());
  backend_.project(layer.kv, input, qkv_.data(), rows());
  backend_.rotate_and_store(attention, places());
}

void HeadLayers::query(const HeadLayer& layer, FloatAddress input) {
  AttentionShape queries = shape_;
  queries.kv_head_count = 0;  // nothing is stored
  const LayerBackend::Attention attention = attention_of(queries, layer, 0, attended_.data());
  backend_.project(layer.qkv, input, attended_.data(), rows());
  backend_.rotate_and_store(attention, places());
  backend_.copy_strided({.from = attended_.data(),
                         .from_stride = shape_.q_size(),
                         .to = qkv_.data(),
                         .to_stride = shape_.qkv_size(),
                         .rows = rows(),
                         .dim = shape_.q_size()});
}

void HeadLayers::see(int64_t window, bool is_causal) {
  shape_.window = window;
  for (size_t i = 0; i < attention_rows_.size(); ++i) {
    const int32_t row = rows_[i];
    attention_rows_[i] = attention_row(*batch_, row);
    AttentionRow& seen = attention_rows_[i];
    if (!is_causal || seen.tail_len == 0) continue;
    seen.tail_len = batch_->positions[static_cast<size_t>(row)] - seen.tail[0] + 1;
  }
}

void HeadLayers::see_prefix_only() {
  for (AttentionRow& row : attention_rows_) row.tail_len = 0;
}

void HeadLayers::keep_wanted(FloatAddress states) {
  const std::span<const int32_t> wanted = batch_->logits_rows;
  const auto move = [&](FloatAddress rows, int64_t dim) {
    backend_.copy({rows, dim, wanted, rows, dim, dim});
  };
  move(qkv_.data(), shape_.qkv_size());
  move(states, hidden_size_);
  size_t kept = 0;
  for (const int32_t row : wanted)  // ascending, so moving rows down in place is safe
    attention_rows_[kept++] = attention_rows_[static_cast<size_t>(row)];
  attention_rows_.resize(kept);
}

void HeadLayers::finish(const HeadLayer& layer, int64_t index, FloatAddress states) {
  if (rows() == 0) return;
  attend(layer, index);
  add_attended(layer, states);
  run_mlp(layer);
  add_mlp(states);
}

FloatAddress HeadLayers::attend(const HeadLayer& layer, int64_t index) {
  reserve(rows(), {&layer, 1});
  backend_.attend(attention_of(shape_, layer, index, qkv_.data()), attention_rows_, attended_.data());
  backend_.project(layer.attention_output, attended_.data(), delta_.data(), rows());
  return delta_.data();
}

FloatAddress HeadLayers::add_attended(const HeadLayer& layer, FloatAddress states) {
  backend_.add_and_normalize({.x = states,
                              .has_delta = true,
                              .delta = delta_.data(),
                              .norm = &layer.mlp_norm,
                              .y = normed_.data(),
                              .rows = rows(),
                              .dim = hidden_size_});
  return normed_.data();
}

FloatAddress HeadLayers::run_mlp(const HeadLayer& layer) {
  backend_.project_and_activate(
      layer.gate_up, normed_.data(),
      {.x = gate_up_.data(), .y = gated_.data(), .rows = rows(), .dim = layer.down.k});
  backend_.project(layer.down, gated_.data(), delta_.data(), rows());
  return delta_.data();
}

void HeadLayers::add_mlp(FloatAddress states) { backend_.add(delta_.data(), states, rows() * hidden_size_); }

void HeadLayers::run(const HeadLayer& layer, int64_t index, FloatAddress states, bool keeps_wanted) {
  FloatAddress input = states;
  if (!layer.attention_norm.empty()) {
    backend_.normalize(states, layer.attention_norm, normed_.data(), rows());
    input = normed_.data();
  }
  store(layer, index, input);
  if (keeps_wanted) keep_wanted(states);
  finish(layer, index, states);
}

}  // namespace outrider
