// SPDX-License-Identifier: Apache-2.0
#include "training/heads/pard_model.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"
#include "training/heads/row_loss.h"
#include "training/lm/llama_config.h"

namespace outrider::training {
namespace {

struct PardOptions {
  LlamaConfig shape = {.hidden_size = 192, .layers = 2, .heads = 3, .kv_heads = 1, .ffn_size = 512};
  int64_t levels = 6;  // tokens that one pass predicts
  // Weight of each level relative to the one before: the share of the rows that the publication keeps.
  double decay = 0.7;
  int64_t mask = -1;  // token at places to be drafted; -1: the last of the vocabulary
};

class PardModel final : public DraftHead {
 public:
  PardModel(const HeadContext& context, const PardOptions& options);

  FeatureNeeds needs() const override { return {}; }
  NamedTensors parameters() const override;
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override {
    return {{"levels", options_.levels}, {"decay", options_.decay}};
  }

 private:
  // Row t of level i reads the mask, or at level 0 token t, at position t + i; it sees the text up to t and
  // the masks of its own earlier levels. Returns the normalised states, [rows, hidden].
  at::Tensor level(const at::Tensor& tokens, std::vector<UnrolledMemory>& memory) const;

  PardOptions options_;
  HeadOptions run_;
  const FrozenTarget& target_;
  LayerShape shape_;
  Rotations rotations_;
  at::Tensor target_head_;  // [vocab, target's hidden] in the type of products
  at::Tensor embedding_, norm_;
  std::vector<LayerWeights> layers_;
};

LayerShape shape_of(const LlamaConfig& config) {
  return {.hidden = config.hidden_size,
          .input = config.hidden_size,
          .heads = config.heads,
          .kv_heads = config.kv_heads,
          .head_dim = config.head_dim(),
          .ffn = config.ffn_size,
          .epsilon = config.rms_eps};
}

Rotations rotations_of(const LlamaConfig& config, int64_t positions, at::Device device) {
  ModelConfig turned;
  turned.head_dim = config.head_dim();
  turned.ropes.front().theta = config.rope_theta;
  return make_rotations(turned, positions, device);
}

PardModel::PardModel(const HeadContext& context, const PardOptions& options)
    : options_(options),
      run_(context.options),
      target_(context.target),
      shape_(shape_of(options.shape)),
      target_head_(context.target.output_head().to(context.device).to(context.options.products)) {
  constexpr double kDeviation = 0.02;
  at::Generator generator = seeded_generator(run_.seed);
  embedding_ = normal_weight({target_.config().vocab_size, shape_.hidden}, kDeviation, generator);
  norm_ = at::ones({shape_.hidden});
  for (int i = 0; i < options.shape.layers; ++i)
    layers_.push_back(initial_layer(shape_, /*has_input_norm=*/true, generator));
  make_trainable(parameters(), context.device);
  const int64_t levels = std::max(options.levels, run_.measured_depth);
  rotations_ = rotations_of(options.shape, run_.context + levels, context.device);
}

NamedTensors PardModel::parameters() const {
  NamedTensors named = {{"model.embed_tokens.weight", embedding_}, {"model.norm.weight", norm_}};
  for (size_t i = 0; i < layers_.size(); ++i)
    append_layer(layers_[i], "model.layers." + std::to_string(i) + ".", named);
  return named;
}

at::Tensor PardModel::level(const at::Tensor& tokens, std::vector<UnrolledMemory>& memory) const {
  at::Tensor states = at::embedding(embedding_, tokens.flatten());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const UnrolledLayer place{shape_, layers_[i], rotations_, tokens.size(0), tokens.size(1)};
    const at::Tensor input = normalized(states, layers_[i].input_norm, shape_.epsilon, run_.products);
    const LayerOutput out = place.run(states, input, memory[i]);
    states = out.x + out.delta.to(at::kFloat);
  }
  return normalized(states, norm_, shape_.epsilon, run_.products);
}

// Row t of level i predicts token t + 1 + i; its distribution follows from the target's state t + i.
HeadLoss PardModel::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const at::Tensor counts = shifted(batch.counted, 1), head = embedding_.to(run_.products);
  TargetLogits target;
  {
    const at::NoGradGuard no_grad;
    target = target_logits({.hidden = batch.hidden.flatten(0, 1).to(run_.products),
                            .head = target_head_,
                            .weight = counts.flatten()});
  }
  const at::Tensor places = target.place.view({windows, length});
  const int64_t levels = batch.measures ? std::max(options_.levels, run_.measured_depth) : options_.levels;
  HeadLoss result{.loss = at::zeros({}, batch.counted.options()), .depths = {}};
  std::vector<UnrolledMemory> memory(layers_.size());
  for (int64_t i = 0; i < std::min(levels, length - 1); ++i) {
    const at::Tensor tokens = i == 0 ? batch.tokens : at::full_like(batch.tokens, options_.mask);
    const at::Tensor weight = shifted(counts, i);
    const RowLoss distribution =
        distribution_loss({.hidden = level(tokens, memory), .head = head, .weight = weight.flatten()},
                          {target.logits, shifted(places, i).flatten()}, run_.hard_share);
    result.depths.push_back({distribution.agrees.view({windows, length}), weight});
    if (i < options_.levels)
      result.loss = result.loss + std::pow(options_.decay, static_cast<double>(i)) * distribution.loss;
  }
  return result;
}

HeadExport PardModel::exported() const {
  const std::vector<TokenId>& ends = target_.config().stop_tokens;
  const std::optional<int> end = ends.empty() ? std::nullopt : std::optional<int>(ends.front());
  HeadExport result{
      .tensors = parameters(), .config = config_json(options_.shape, end), .files = tokenizer_files(target_)};
  result.config["pard_token"] = options_.mask;
  return result;
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, PardOptions options) {
  OUTRIDER_RETURN_IF_ERROR(check_tokenizer_file(context.target));
  const int64_t vocab = context.target.config().vocab_size;
  options.shape.vocab_size = static_cast<int>(vocab);
  options.shape.max_context = static_cast<int>(context.target.config().max_context);
  OUTRIDER_RETURN_IF_ERROR(check_shape(options.shape));
  if (options.mask < 0) options.mask = vocab - 1;
  if (options.mask >= vocab) {
    return usage_error("--mask-token: a token of the target, below " + std::to_string(vocab) +
                       ", is expected, found " + std::to_string(options.mask));
  }
  return std::unique_ptr<DraftHead>(std::make_unique<PardModel>(context, options));
}

void add_options(CLI::App& command, PardOptions& options) {
  add_shape_options(command, options.shape);
  command.add_option("--levels", options.levels, "tokens that one pass predicts")->check(CLI::Range(1, 16));
  command.add_option("--decay", options.decay, "weight of each level relative to the one before")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--mask-token", options.mask,
                     "token at places to be drafted; -1: the vocabulary's last");
}

}  // namespace

HeadRecipe pard_recipe() {
  auto options = std::make_shared<PardOptions>();
  HeadOptions defaults;
  defaults.learning_rate = 2e-3;
  defaults.weight_decay = 0.1;
  return {.command = method_key(Method::kPard),
          .decoding_type = Method::kPard,
          .description = "Distil a separate small model that drafts all tokens in one pass",
          .defaults = std::move(defaults),
          .add_options = [options](CLI::App& command) { add_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace outrider::training
