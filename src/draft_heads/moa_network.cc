// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/moa_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

// Layers of the drafter's cache.
constexpr int64_t kSelf = 0;
constexpr int64_t kCross = 1;

LayerPlace place_of(const char* prefix, const ModelConfig& config) {
  return {.prefix = prefix, .input_size = config.hidden_size};
}

}  // namespace

MoaNetwork::MoaNetwork(MoaConfig config, Model& target, const ModelOptions& options)
    : config_(std::move(config)),
      target_(&target),
      backend_(target.backend()),
      vocabulary_(&target),
      layers_(config_.self_attention, backend_, options.pool) {
  if (!config_.uses_layers) return;
  target_layers_.emplace(config_.layer_self_attention, backend_, options.pool);
  KvShape shape = target_layers_->kv_shape(1);
  shape.page_size = static_cast<int>(target.config().layer_count);
  shape.page_count = max_context();
  layer_cache_ = std::make_unique<KvCache>(shape, KvOptions(), backend_.make_storage(shape));
}

Result<std::unique_ptr<MoaNetwork>> MoaNetwork::load(const HeadFile& head, Model& target,
                                                     const ModelOptions& options) {
  OUTRIDER_TRY(MoaConfig config, read_moa_config(head, target.config()));
  auto network = std::unique_ptr<MoaNetwork>(new MoaNetwork(std::move(config), target, options));
  OUTRIDER_RETURN_IF_ERROR(network->load_weights(head, options));
  return network;
}

Status MoaNetwork::load_weights(const HeadFile& head, const ModelOptions& options) {
  WeightLoader loader(head.file, options);
  OUTRIDER_RETURN_IF_ERROR(load_decoder_layer(
      loader, config_.self_attention, place_of("self_attention.", config_.self_attention), self_attention_));
  if (config_.uses_cross) {
    LayerPlace place = place_of("cross_attention.", config_.cross_attention);
    place.splits_queries = true;
    OUTRIDER_RETURN_IF_ERROR(load_decoder_layer(loader, config_.cross_attention, place, cross_attention_));
  }
  if (config_.uses_layers) {
    const ModelConfig& layers = config_.layer_self_attention;
    OUTRIDER_RETURN_IF_ERROR(
        load_decoder_layer(loader, layers, place_of("layer_self_attention.", layers), layer_self_attention_));
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{"Ekv2E", config_.self_attention.hidden_size}}, layers.hidden_size,
                                         /*bias=*/true, to_hidden_));
  }
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output_rows(loader, head.file, head.output_rows));
  OUTRIDER_TRY(memory_, loader.pack_all());
  return {};
}

KvShape MoaNetwork::kv_shape() const { return layers_.kv_shape(config_.uses_cross ? 2 : 1); }

void MoaNetwork::reserve(int64_t rows) {
  const int64_t context = max_context();
  rows = std::max(rows, context);
  reserved_ = rows;
  const int64_t hidden = config_.self_attention.hidden_size;
  layers_.reserve(rows, {&self_attention_, 1});
  layers_.reserve(rows, {&cross_attention_, 1});
  vocabulary_.reserve(rows);
  states_.reserve(rows, hidden);
  normed_.reserve(rows, hidden);
  if (!config_.uses_layers) return;
  const int64_t count = target_->config().layer_count;
  target_layers_->reserve(context * count, {&layer_self_attention_, 1});
  by_layer_.reserve(context * count, config_.layer_self_attention.hidden_size);
  mean_.reserve(context, config_.layer_self_attention.hidden_size);
  mixed_.reserve(context, hidden);
  layer_batch_.reserve(
      {.rows = context * count, .max_sequences = context, .max_entries = count, .page_size = count});
}

FloatAddress MoaNetwork::pool_layers(std::span<const int32_t> slots, const KvCache& target_cache) {
  const auto tokens = std::ssize(slots);
  OUTRIDER_CHECK(config_.uses_layers && tokens <= max_context());
  const int64_t count = target_->config().layer_count;
  const int64_t dim = pooled_size();
  by_layer_.reserve(tokens * count, dim);
  mean_.reserve(tokens, dim);
  backend_.read_entries({.cache = &target_cache, .layers = {0, count}, .slots = slots}, by_layer_.data());
  layer_batch_.clear();
  for (int32_t token = 0; token < tokens; ++token) {
    for (int32_t layer = 0; layer < count; ++layer) {
      layer_batch_.tokens.push_back(0);
      layer_batch_.positions.push_back(layer);
      layer_batch_.slots.push_back(static_cast<int32_t>(token * count + layer));
      layer_batch_.sequences.push_back(token);
      layer_batch_.prefix_len.push_back(static_cast<int32_t>(count));  // every layer sees all
      layer_batch_.tail_begin.push_back(0);
    }
    layer_batch_.pages.push_back(token);
    layer_batch_.page_begin.push_back(token + 1);
  }
  target_layers_->begin(layer_batch_, *layer_cache_);
  target_layers_->run(layer_self_attention_, 0, by_layer_.data(), /*keeps_wanted=*/false);
  backend_.average({.x = by_layer_.data(), .y = mean_.data(), .rows = tokens, .count = count, .dim = dim});
  return mean_.data();
}

FloatAddress MoaNetwork::states_of(FloatAddress pooled, int64_t tokens) {
  OUTRIDER_CHECK(config_.uses_layers && tokens <= max_context());
  const int64_t hidden = config_.self_attention.hidden_size;
  mixed_.reserve(tokens, hidden);
  backend_.project(to_hidden_, pooled, mixed_.data(), tokens);
  return mixed_.data();
}

void MoaNetwork::embed(const ForwardBatch& batch) {
  const int64_t hidden = config_.self_attention.hidden_size;
  states_.reserve(batch.rows(), hidden);
  normed_.reserve(batch.rows(), hidden);
  target_->embed_tokens(batch.tokens, states_.data());
}

void MoaNetwork::add_context(const ForwardBatch& batch, FloatAddress states, KvCache& cache) {
  if (batch.rows() == 0) return;
  embed(batch);
  layers_.begin(batch, cache);
  backend_.normalize(states_.data(), self_attention_.attention_norm, normed_.data(), batch.rows());
  layers_.store(self_attention_, kSelf, normed_.data());
  if (!config_.uses_cross) return;
  backend_.normalize(states, cross_attention_.attention_norm, normed_.data(), batch.rows());
  layers_.store_context(cross_attention_, kCross, normed_.data());
}

FloatAddress MoaNetwork::run(const ForwardBatch& batch, KvCache& cache) {
  if (batch.rows() > reserved_) reserve(batch.rows());
  embed(batch);
  layers_.begin(batch, cache);
  layers_.run(self_attention_, kSelf, states_.data(), /*keeps_wanted=*/false);
  if (config_.uses_cross) {
    layers_.see_prefix_only();
    backend_.normalize(states_.data(), cross_attention_.attention_norm, normed_.data(), batch.rows());
    layers_.query(cross_attention_, normed_.data());
    layers_.finish(cross_attention_, kCross, states_.data());
  }
  return states_.data();
}

}  // namespace outrider
