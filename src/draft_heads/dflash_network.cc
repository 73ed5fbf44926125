// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/dflash_network.h"

#include <algorithm>
#include <string>
#include <utility>

namespace outrider {

DFlashNetwork::DFlashNetwork(DFlashConfig config, Model* target, const ModelOptions& options)
    : config_(std::move(config)),
      backend_(target->backend()),
      vocabulary_(target),
      layers_(config_.layers, backend_, options.pool),
      context_norm_(empty_norm(config_.layers.norm.epsilon)),
      output_norm_(context_norm_),
      weights_(static_cast<size_t>(config_.layers.layer_count)) {}

Result<std::unique_ptr<DFlashNetwork>> DFlashNetwork::load(const HeadFile& head, Model* target,
                                                           const ModelOptions& options) {
  OUTRIDER_TRY(DFlashConfig config, read_dflash_config(head, target->config()));
  auto network = std::unique_ptr<DFlashNetwork>(new DFlashNetwork(std::move(config), target, options));
  OUTRIDER_RETURN_IF_ERROR(network->load_weights(head, options));
  return network;
}

Status DFlashNetwork::load_weights(const HeadFile& head, const ModelOptions& options) {
  const int64_t hidden = config_.layers.hidden_size;
  const ModelFile file = CandidateSelector::with_table_names(head.file);
  WeightLoader loader(file, options);
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{"fc", hidden}}, std::ssize(config_.ids) * hidden, /*bias=*/false, fuse_));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector("hidden_norm.weight", hidden, context_norm_.weight));
  OUTRIDER_RETURN_IF_ERROR(loader.read_vector("norm.weight", hidden, output_norm_.weight));
  for (size_t i = 0; i < weights_.size(); ++i) {
    const LayerPlace place{
        .prefix = "layers." + std::to_string(i) + ".", .input_size = hidden, .splits_queries = true};
    OUTRIDER_RETURN_IF_ERROR(load_decoder_layer(loader, config_.layers, place, weights_[i]));
  }
  OUTRIDER_RETURN_IF_ERROR(plan_second_version(head, loader));
  if (head.tensors.contains("embed_tokens.weight"))
    OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_embedding(loader, "embed_tokens"));
  if (head.tensors.contains("lm_head.weight"))
    OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output(loader, "lm_head", config_.vocabulary));
  OUTRIDER_RETURN_IF_ERROR(vocabulary_.plan_output_rows(loader, head.file, head.output_rows));
  if (config_.markov)
    OUTRIDER_RETURN_IF_ERROR(
        markov_.emplace(*config_.markov, config_.vocabulary, backend_).plan(head, loader));
  OUTRIDER_TRY(memory_, loader.pack_all());
  weight_bytes_ = loader.packed_bytes();
  return {};
}

Status DFlashNetwork::plan_second_version(const HeadFile& head, WeightLoader& loader) {
  if (config_.selector) OUTRIDER_RETURN_IF_ERROR(selector_.emplace(*config_.selector, backend_).plan(loader));
  if (!config_.convolutions) return {};
  for (size_t i = 0; i < weights_.size(); ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    Convolutions& around = convolutions_.emplace_back(backend_);
    OUTRIDER_RETURN_IF_ERROR(
        around.attention.plan(layer + "attention_conv.", *config_.convolutions, head, loader));
    OUTRIDER_RETURN_IF_ERROR(around.mlp.plan(layer + "mlp_conv.", *config_.convolutions, head, loader));
  }
  return {};
}

FeatureTaps DFlashNetwork::taps() const {
  FeatureTaps taps;
  for (const int64_t id : config_.ids) taps.layers.push_back(id + 1);  // what leaves layer id
  return taps;
}

void DFlashNetwork::reserve(int64_t rows) {
  layers_.reserve(rows, weights_);
  backend_.reserve_product(fuse_, rows);
  states_.reserve(rows, config_.layers.hidden_size);
  normed_.reserve(rows, config_.layers.hidden_size);
}

void DFlashNetwork::append_block(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& staged,
                                 TokenId pending) const {
  const std::span<const int32_t> pages = sequence.pages();
  batch.pages.insert(batch.pages.end(), pages.begin(), pages.end());
  batch.page_begin.push_back(static_cast<int32_t>(batch.pages.size()));
  const auto count = static_cast<int>(config_.block_size);
  for (int i = 0; i < count; ++i) {
    batch.tokens.push_back(i == 0 ? pending : config_.mask);
    batch.positions.push_back(sequence.length() + i);
    batch.slots.push_back(staged.slot(i));
    batch.sequences.push_back(static_cast<int32_t>(batch.page_begin.size()) - 2);
    batch.prefix_len.push_back(sequence.length());
    for (int other = 0; other < count; ++other) batch.tails.push_back(sequence.length() + other);
    batch.tail_begin.push_back(static_cast<int32_t>(batch.tails.size()));
  }
}

void DFlashNetwork::add_context(const ForwardBatch& batch, FloatAddress features, KvCache& cache) {
  const int64_t rows = batch.rows();
  reserve(rows);
  backend_.project(fuse_, features, states_.data(), rows);
  backend_.normalize(states_.data(), context_norm_, states_.data(), rows);
  layers_.begin(batch, cache);
  // Not normalised again by the layers.
  for (size_t i = 0; i < weights_.size(); ++i)
    layers_.store_context(weights_[i], static_cast<int64_t>(i), states_.data());
}

FloatAddress DFlashNetwork::run(const ForwardBatch& batch, KvCache& cache,
                                const std::function<void(bool)>& see) {
  const int64_t rows = batch.rows();
  reserve(rows);
  vocabulary_.embed(batch.tokens, states_.data());
  layers_.begin(batch, cache);
  for (size_t i = 0; i < weights_.size(); ++i) run_layer(i, see);
  backend_.normalize(states_.data(), output_norm_, states_.data(), rows);
  return states_.data();
}

// One layer over the rows of blocks.
void DFlashNetwork::run_layer(size_t index, const std::function<void(bool)>& see) {
  const HeadLayer& layer = weights_[index];
  const auto number = static_cast<int64_t>(index);
  const int64_t rows = layers_.rows();
  Convolutions* around = convolutions_.empty() ? nullptr : &convolutions_[index];
  const auto convolve = [&](BlockConvolution& part, BlockConvolution::Side side, FloatAddress x) {
    if (side == BlockConvolution::kBefore) part.weigh(x, rows);
    part.apply(side, x, rows, config_.block_size);
  };
  backend_.normalize(states_.data(), layer.attention_norm, normed_.data(), rows);
  if (around) convolve(around->attention, BlockConvolution::kBefore, normed_.data());
  layers_.store_context(layer, number, normed_.data());
  layers_.query(layer, normed_.data());
  layers_.see(config_.layers.traits_of(number).window, config_.is_causal[index]);
  if (see) see(config_.is_causal[index]);
  const FloatAddress attended = layers_.attend(layer, number);
  if (around) convolve(around->attention, BlockConvolution::kAfter, attended);
  const FloatAddress input = layers_.add_attended(layer, states_.data());
  if (around) convolve(around->mlp, BlockConvolution::kBefore, input);
  const FloatAddress output = layers_.run_mlp(layer);
  if (around) convolve(around->mlp, BlockConvolution::kAfter, output);
  layers_.add_mlp(states_.data());
}

}  // namespace outrider
