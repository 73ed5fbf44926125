// SPDX-License-Identifier: Apache-2.0
#include "training/heads/dflash_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/counter_rng.h"
#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"
#include "training/heads/row_loss.h"

namespace outrider::training {
namespace {

struct DFlashOptions {
  int64_t layers = 2;
  int64_t block = 8;
  int64_t anchors = 16;      // blocks per window in one step
  double gamma = 4.0;        // place k of a block weighs exp(-(k - 1) / gamma)
  std::vector<int64_t> ids;  // layers of the target whose outputs it reads; empty: the published ones
  int64_t mask = -1;         // token at places to be drafted; -1: the last of the vocabulary
  int64_t mlp = 0;           // inner units of the MLPs; 0: as many as in the target
};

class DFlashHead final : public DraftHead {
 public:
  DFlashHead(const HeadContext& context, const DFlashOptions& options);

  FeatureNeeds needs() const override;
  NamedTensors parameters() const override;
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override {
    return {{"anchors", options_.anchors}, {"gamma", options_.gamma}};
  }

 private:
  struct Layer {
    LayerWeights weights;
    at::Tensor q_norm, k_norm;  // [head_dim]
  };
  // Projects rows, x [windows * rows, width], to heads, normalises and rotates them by their positions,
  // places int64 [windows, rows]; returns [windows, rows, heads, head_dim].
  at::Tensor turned(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& norm,
                    const at::Tensor& places) const;
  // The drafter's output for the blocks at `anchors`, int64 [windows, count]: [windows * count * block,
  // hidden].
  at::Tensor blocks(const HeadBatch& batch, const at::Tensor& anchors) const;

  DFlashOptions options_;
  ModelConfig target_;
  at::Device device_;
  at::ScalarType type_;
  LayerShape shape_;
  at::Tensor fc_, hidden_norm_, norm_;
  std::vector<Layer> layers_;
  at::Tensor embedding_, output_head_;
  Rotations rotations_;
};

DFlashHead::DFlashHead(const HeadContext& context, const DFlashOptions& options)
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

FeatureNeeds DFlashHead::needs() const {
  FeatureNeeds needs;
  for (const int64_t id : options_.ids) needs.taps.push_back(id + 1);  // the output of layer id
  return needs;
}

NamedTensors DFlashHead::parameters() const {
  NamedTensors named = {{"fc.weight", fc_}, {"hidden_norm.weight", hidden_norm_}, {"norm.weight", norm_}};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    append_layer(layers_[i].weights, prefix, named);
    named.emplace_back(prefix + "self_attn.q_norm.weight", layers_[i].q_norm);
    named.emplace_back(prefix + "self_attn.k_norm.weight", layers_[i].k_norm);
  }
  return named;
}

at::Tensor DFlashHead::turned(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& norm,
                              const at::Tensor& places) const {
  const int64_t windows = places.size(0), rows = places.size(1), dim = shape_.head_dim;
  const at::Tensor projected = product(x, weight).to(at::kFloat).reshape({-1, dim});
  const at::Tensor heads =
      normalized(projected, norm, shape_.epsilon, type_).view({1, windows * rows, -1, dim});
  const at::Tensor index = places.flatten();
  return rotate(heads, rotations_.cos.index_select(0, index), rotations_.sin.index_select(0, index))
      .view({windows, rows, -1, dim});
}

at::Tensor DFlashHead::blocks(const HeadBatch& batch, const at::Tensor& anchors) const {
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

HeadLoss DFlashHead::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1), block = options_.block;
  HeadLoss result{.loss = (fc_ * 0).sum(), .depths = {}};
  if (length < block + 1) return result;  // no block fits into the windows
  const int64_t max = length - block;     // positions at which a block can begin
  const int64_t count = std::min(batch.measures ? 4 * options_.anchors : options_.anchors, max);
  const at::Tensor anchors = sampled_anchors(batch.seed, {windows, count}, length, block - 1).to(device_);
  const at::Tensor output = blocks(batch, anchors).view({windows, count, block, -1});
  std::vector<at::Tensor> parts, texts, weights;
  for (int64_t place = 1; place < block; ++place) {
    parts.push_back(output.select(2, place).reshape({windows * count, -1}));
    texts.push_back(batch.tokens.gather(1, anchors + place).flatten());
    weights.push_back(batch.counted.gather(1, anchors + place).flatten() *
                      std::exp(-static_cast<double>(place - 1) / options_.gamma));
  }
  result.loss =
      token_loss({.hidden = at::cat(parts), .head = output_head_, .weight = at::cat(weights)}, at::cat(texts))
          .loss;
  if (!batch.measures) return result;
  const at::Tensor truth =
      likeliest_tokens(batch.hidden.flatten(0, 1).to(type_), output_head_).view({windows, length});
  for (int64_t place = 1; place < block; ++place) {
    const at::Tensor found = likeliest_tokens(parts[static_cast<size_t>(place - 1)], output_head_);
    const at::Tensor agrees =
        found.view({windows, count}).eq(truth.gather(1, anchors + (place - 1))).to(at::kFloat);
    result.depths.push_back({agrees, batch.counted.gather(1, anchors + place), {}});
  }
  return result;
}

HeadExport DFlashHead::exported() const {
  HeadExport result{.tensors = parameters(), .config = layer_config(target_, shape_)};
  result.config["architectures"] = {"DFlashDraftModel"};
  result.config["model_type"] = "qwen3";
  result.config["num_hidden_layers"] = options_.layers;
  result.config["tie_word_embeddings"] = false;
  result.config["block_size"] = options_.block;
  result.config["num_target_layers"] = target_.layer_count;
  result.config["dflash_config"] = {{"mask_token_id", options_.mask}, {"target_layer_ids", options_.ids}};
  return result;
}

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

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, DFlashOptions options) {
  const ModelConfig& target = context.target.config();
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
  return std::unique_ptr<DraftHead>(std::make_unique<DFlashHead>(context, options));
}

void add_options(CLI::App& command, DFlashOptions& options) {
  command.add_option("--layers", options.layers, "layers of the drafter")->check(CLI::Range(1, 64));
  command.add_option("--block", options.block, "tokens of a block, the one it begins with included")
      ->check(CLI::Range(2, 65));
  command.add_option("--anchors", options.anchors, "blocks of every window in a step")
      ->check(CLI::PositiveNumber);
  command.add_option("--gamma", options.gamma, "place k of a block weighs exp(-(k - 1) / gamma)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--layer-ids", options.ids, "layers of the target whose outputs it reads; default: spread")
      ->delimiter(',');
  command.add_option("--mask-token", options.mask,
                     "token at places to be drafted; -1: the vocabulary's last");
  command.add_option("--mlp", options.mlp, "size of its layers' MLPs; 0: the target's")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

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

HeadRecipe dflash_recipe() {
  auto options = std::make_shared<DFlashOptions>();
  return {.command = method_key(Method::kDFlash),
          .decoding_type = Method::kDFlash,
          .description = "Train a DFlash drafter: one pass for a block of tokens",
          .add_options = [options](CLI::App& command) { add_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace outrider::training
