// SPDX-License-Identifier: Apache-2.0
#include "training/heads/block_backbone.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "base/counter_rng.h"
#include "training/core/autograd_ops.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"

namespace outrider::training {
namespace {

// The published choice of layers; if it would repeat some, because the target has few, they are spread over
// all.
std::vector<int64_t> default_ids(int64_t target_layers, int64_t count) {
  std::vector<int64_t> ids;
  if (count == 1) return {target_layers / 2};
  const bool is_small = target_layers - 4 < count - 1;
  const double first = is_small ? 0.0 : 1.0,
               span = static_cast<double>(target_layers) - (is_small ? 1.0 : 4.0);
  for (int64_t i = 0; i < count; ++i) {
    const double place = first + static_cast<double>(i) * span / static_cast<double>(count - 1);
    ids.push_back(static_cast<int64_t>(std::nearbyint(place)));
  }
  return ids;
}

}  // namespace

BlockBackbone::BlockBackbone(const HeadContext& context, const BlockOptions& options)
    : options_(options),
      target_(context.target.config()),
      device_(context.device),
      type_(context.options.products),
      shape_(layer_shape(target_)) {
  const FrozenTarget& target = context.target;
  if (options.mlp > 0) shape_.ffn = options.mlp;
  at::Generator generator = seeded_generator(context.options.seed);
  constexpr double kDeviation = 0.02;
  fc_ = normal_weight({shape_.hidden, std::ssize(options.ids) * shape_.hidden}, kDeviation, generator);
  hidden_norm_ = at::ones({shape_.hidden});
  norm_ = target.weight("model.norm.weight");
  for (int64_t i = 0; i < options.layers; ++i) {
    layers_.push_back({.weights = initial_layer(shape_, /*has_input_norm=*/true, generator),
                       .q_norm = at::ones({shape_.head_dim}),
                       .k_norm = at::ones({shape_.head_dim})});
  }
  make_trainable(parameters(), device_);
  const auto shared = [&](const at::Tensor& weight) { return weight.to(device_).to(type_); };
  embedding_ = shared(target.embedding());
  output_head_ = shared(target.output_head());
  rotations_ = make_rotations(target_, context.options.context + options.block, device_);
}

FeatureNeeds BlockBackbone::needs() const {
  FeatureNeeds needs;
  for (const int64_t id : options_.ids) needs.taps.push_back(id + 1);  // the output of layer id
  return needs;
}

NamedTensors BlockBackbone::parameters() const {
  NamedTensors named = {{"fc.weight", fc_}, {"hidden_norm.weight", hidden_norm_}, {"norm.weight", norm_}};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    append_layer(layers_[i].weights, prefix, named);
    named.emplace_back(prefix + "self_attn.q_norm.weight", layers_[i].q_norm);
    named.emplace_back(prefix + "self_attn.k_norm.weight", layers_[i].k_norm);
  }
  return named;
}

at::Tensor BlockBackbone::anchors(const HeadBatch& batch, int64_t following) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1), max = length - following - 1;
  if (max < 1) return {};
  const int64_t count = std::min(batch.measures ? 4 * options_.anchors : options_.anchors, max);
  return sampled_anchors(batch.seed, {windows, count}, length, following).to(device_);
}

at::Tensor BlockBackbone::turned(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& norm,
                                 const at::Tensor& places) const {
  const int64_t windows = places.size(0), rows = places.size(1), dim = shape_.head_dim;
  const at::Tensor projected = product(x, weight).to(at::kFloat).reshape({-1, dim});
  const at::Tensor heads =
      normalized(projected, norm, shape_.epsilon, type_).view({1, windows * rows, -1, dim});
  const at::Tensor index = places.flatten();
  return rotate(heads, rotations_.cos.index_select(0, index), rotations_.sin.index_select(0, index))
      .view({windows, rows, -1, dim});
}

at::Tensor BlockBackbone::states(const HeadBatch& batch, const at::Tensor& anchors) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const int64_t count = anchors.size(1), block = options_.block, rows = count * block;
  const double epsilon = shape_.epsilon;
  const auto longs = batch.tokens.options();
  const at::Tensor fused = product(batch.features.flatten(0, 1).to(type_), fc_).to(at::kFloat);
  const at::Tensor context = normalized(fused, hidden_norm_, epsilon, type_);
  const at::Tensor before = at::arange(length, longs).expand({windows, length});
  const at::Tensor places = (anchors.unsqueeze(2) + at::arange(block, longs)).view({windows, rows});
  at::Tensor tokens = at::full({windows, count, block}, options_.mask, longs);
  tokens.select(2, 0).copy_(batch.tokens.gather(1, anchors));
  // A block sees the tokens before it and itself.
  const at::Tensor own = at::arange(rows, longs).floor_divide(block);
  const at::Tensor others = own.unsqueeze(1).ne(own.unsqueeze(0)).expand({windows, rows, rows});
  const at::Tensor first = anchors.repeat_interleave(block, 1).unsqueeze(2);  // [windows, rows, 1]
  const at::Tensor unseen = at::cat({at::arange(length, longs).view({1, 1, length}).ge(first), others}, 2);

  at::Tensor states = at::embedding(embedding_, tokens.flatten()).to(at::kFloat);
  for (const Layer& layer : layers_) {
    const at::Tensor x = normalized(states, layer.weights.input_norm, epsilon, type_);
    const auto values = [&](const at::Tensor& from, int64_t n) {
      return product(from, layer.weights.v).view({windows, n, -1, shape_.head_dim});
    };
    const at::Tensor q = turned(x, layer.weights.q, layer.q_norm, places);
    const at::Tensor k = at::cat({turned(context, layer.weights.k, layer.k_norm, before),
                                  turned(x, layer.weights.k, layer.k_norm, places)},
                                 1);
    const at::Tensor v = at::cat({values(context, length), values(x, rows)}, 1);
    const LayerOutput out = finished_layer(shape_, layer.weights, states, masked_attention(q, k, v, unseen));
    states = out.x + out.delta.to(at::kFloat);
  }
  return normalized(states, norm_, epsilon, type_);
}

nlohmann::json BlockBackbone::config() const {
  nlohmann::json config = layer_config(target_, shape_);
  config["model_type"] = "qwen3";
  config["num_hidden_layers"] = options_.layers;
  config["tie_word_embeddings"] = false;
  config["block_size"] = options_.block;
  config["num_target_layers"] = target_.layer_count;
  return config;
}

Result<BlockOptions> completed(BlockOptions options, const ModelConfig& target) {
  if (options.ids.empty())
    options.ids = default_ids(target.layer_count, std::min(options.layers, target.layer_count));
  if (options.mask < 0) options.mask = target.vocab_size - 1;
  if (options.mask >= target.vocab_size) {
    return usage_error("--mask-token: a token of the target, below " + std::to_string(target.vocab_size) +
                       ", is expected, found " + std::to_string(options.mask));
  }
  for (size_t i = 0; i < options.ids.size(); ++i) {
    const int64_t id = options.ids[i];
    if (id >= 0 && id < target.layer_count && (i == 0 || id > options.ids[i - 1])) continue;
    return usage_error("--layer-ids: rising layers from 0 to " + std::to_string(target.layer_count - 1) +
                       " are expected, found " + std::to_string(id));
  }
  return options;
}

void add_block_options(CLI::App& command, BlockOptions& options) {
  command.add_option("--layers", options.layers, "layers of the drafter")->check(CLI::Range(1, 64));
  command.add_option("--block", options.block, "tokens of a block, the one it begins with included")
      ->check(CLI::Range(2, 65));
  command.add_option("--anchors", options.anchors, "blocks of every window in a step")
      ->check(CLI::PositiveNumber);
  command.add_option("--gamma", options.gamma, "the k-th place that drafts weighs exp(-(k - 1) / gamma)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--layer-ids", options.ids,
                  "layers of the target that it reads the outputs of; default: spread")
      ->delimiter(',');
  command.add_option("--mask-token", options.mask,
                     "token at places to be drafted; -1: the vocabulary's last");
  command.add_option("--mlp", options.mlp, "size of its layers' MLPs; 0: the target's")
      ->check(CLI::NonNegativeNumber);
}

at::Tensor sampled_anchors(uint64_t seed, at::IntArrayRef windows_and_count, int64_t length,
                           int64_t following) {
  const int64_t count = windows_and_count[1], places = length - following - 1;  // from 1
  at::Tensor anchors = at::empty(windows_and_count, at::kLong);
  for (int64_t i = 0; i < anchors.numel(); ++i) {
    const int64_t begin = i % count * places / count, end = (i % count + 1) * places / count;
    const uint64_t bits = mix64(seed ^ mix64(static_cast<uint64_t>(i)));
    anchors.data_ptr<int64_t>()[i] =
        1 + begin + static_cast<int64_t>(bits % static_cast<uint64_t>(end - begin));
  }
  return anchors;
}

}  // namespace outrider::training
