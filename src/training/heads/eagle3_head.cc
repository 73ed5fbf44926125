// SPDX-License-Identifier: Apache-2.0
#include "training/heads/eagle3_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"
#include "training/heads/recurrent_head.h"
#include "training/heads/vocabulary/draft_vocabulary.h"

namespace outrider::training {
namespace {

struct Eagle3Options {
  std::vector<int64_t> taps = {};                 // empty: 2, L/2, L-3, or thirds
  UnrollOptions unroll = {.loss_vocab = 0};       // it compares all tokens that it can draft
  bool is_parallel = false;                       // P-EAGLE
  bool norms_taps = false, norms_output = false;  // EAGLE-3.1
  int64_t mask = -1;  // its token at places to be drafted; -1: the last of the vocabulary
};

class Eagle3Head final : public RecurrentHead {
 public:
  Eagle3Head(const HeadContext& context, const Eagle3Options& options, const at::Tensor& draft_tokens);

  FeatureNeeds needs() const override { return {.taps = options_.taps, .likeliest = true}; }
  NamedTensors parameters() const override;
  HeadExport exported() const override;
  NamedTensors fitted(NamedTensors stored) const override;
  nlohmann::json fingerprint() const override { return unroll_fingerprint(); }

 protected:
  MaskedPlace masked_place() const override;
  at::Tensor first_state(const HeadBatch& batch) const override;
  Outputs step(const at::Tensor& state, const at::Tensor& embeddings, const UnrolledLayer& place,
               UnrolledMemory& memory) const override;
  const LayerWeights& layer() const override { return layer_; }
  at::Tensor draft_head(const LossTokens& tokens) const override {
    return tokens.rows_of_draft_head(lm_head_).to(type());
  }

 private:
  // The taps, [rows, taps * hidden], as one state, f32 [rows, hidden].
  at::Tensor fused(const at::Tensor& features) const;

  Eagle3Options options_;
  ModelConfig target_;
  at::Tensor fc_, hidden_norm_, norm_, lm_head_;
  std::vector<at::Tensor> tap_norms_;  // [hidden] each, or none
  at::Tensor
      mask_hidden_;  // [1, 1, taps * hidden]: features at places to be drafted; undefined: not parallel
  LayerWeights layer_;
};

// Begins as the target's own last layer, norm and head on the last tap; training adds the information of the
// other taps and of the next token's embedding.
Eagle3Head::Eagle3Head(const HeadContext& context, const Eagle3Options& options,
                       const at::Tensor& draft_tokens)
    : RecurrentHead(context, options.unroll, draft_tokens),
      options_(options),
      target_(context.target.config()) {
  const FrozenTarget& target = context.target;
  const int64_t hidden = target_.hidden_size, taps = std::ssize(options_.taps);
  mutable_shape().input = 2 * hidden;
  at::Generator generator = seeded_generator(context.options.seed);
  constexpr double kDeviation = 0.02;
  fc_ = normal_weight({hidden, taps * hidden}, kDeviation, generator);
  fc_.narrow(1, (taps - 1) * hidden, hidden).add_(at::eye(hidden));
  layer_ = target.last_layer(layer_shape(target_), generator);
  if (shape().ffn != layer_.gate.size(0)) resize_mlp(layer_, shape().ffn, generator);
  if (options_.norms_taps)
    for (int64_t i = 0; i < taps; ++i) tap_norms_.push_back(at::ones({hidden}));
  hidden_norm_ = layer_.input_norm.clone();
  layer_.input_norm.fill_(1.0);
  for (at::Tensor* weight : {&layer_.q, &layer_.k, &layer_.v})
    *weight = at::cat({normal_weight(weight->sizes(), kDeviation, generator), *weight}, 1);
  norm_ = target.norm("model.norm");
  lm_head_ = target.output_head().index_select(0, draft_tokens);
  if (options_.is_parallel) mask_hidden_ = normal_weight({1, 1, taps * hidden}, kDeviation, generator);
  make_trainable(parameters(), context.device);
}

NamedTensors Eagle3Head::parameters() const {
  NamedTensors named = {{"fc.weight", fc_}, {"midlayer.hidden_norm.weight", hidden_norm_}};
  append_layer(layer_, "midlayer.", named);
  named.emplace_back("norm.weight", norm_);
  named.emplace_back("lm_head.weight", lm_head_);
  if (mask_hidden_.defined()) named.emplace_back("mask_hidden", mask_hidden_);
  for (size_t i = 0; i < tap_norms_.size(); ++i)
    named.emplace_back("fc_norm." + std::to_string(i) + ".weight", tap_norms_[i]);
  return named;
}

RecurrentHead::MaskedPlace Eagle3Head::masked_place() const {
  if (!mask_hidden_.defined()) return {};
  return {.state = fused(mask_hidden_.flatten(0, 1)), .token = options_.mask};
}

at::Tensor Eagle3Head::fused(const at::Tensor& features) const {
  if (tap_norms_.empty()) return product(features.to(type()), fc_).to(at::kFloat);
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < tap_norms_.size(); ++i) {
    const at::Tensor tap = features.narrow(1, static_cast<int64_t>(i) * shape().hidden, shape().hidden);
    parts.push_back(normalized(tap.to(at::kFloat).contiguous(), tap_norms_[i], shape().epsilon, type()));
  }
  return product(at::cat(parts, 1), fc_).to(at::kFloat);
}

at::Tensor Eagle3Head::first_state(const HeadBatch& batch) const {
  return fused(batch.features.flatten(0, 1));
}

RecurrentHead::Outputs Eagle3Head::step(const at::Tensor& state, const at::Tensor& embeddings,
                                        const UnrolledLayer& place, UnrolledMemory& memory) const {
  const double epsilon = shape().epsilon;
  const at::Tensor input = at::cat({normalized(embeddings.to(at::kFloat), layer_.input_norm, epsilon, type()),
                                    normalized(state, hidden_norm_, epsilon, type())},
                                   1);
  const LayerOutput output = place.run(state, input, memory);
  const NormedResidual last = residual_norm(output.x, output.delta, norm_, epsilon);
  return {.state = options_.norms_output ? last.normed.to(at::kFloat) : last.sum, .normed = last.normed};
}

HeadExport Eagle3Head::exported() const {
  HeadExport result{.tensors = parameters(), .config = layer_config(target_, shape())};
  append_vocabulary_map(draft_tokens(), target_.vocab_size, result);
  result.config["architectures"] = {"LlamaForCausalLMEagle3"};
  result.config["model_type"] = "llama";
  result.config["num_hidden_layers"] = 1;
  result.config["tie_word_embeddings"] = false;
  result.config["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", options_.taps},
                                   {"use_aux_hidden_state", true}};
  if (options_.is_parallel) result.config["ptd_token_id"] = options_.mask;
  if (options_.norms_taps) result.config["fc_norm"] = true;
  if (options_.norms_output) result.config["norm_output"] = true;
  return result;
}

// Tokens that the written head cannot draft keep the rows of the target's output head.
NamedTensors Eagle3Head::fitted(NamedTensors stored) const {
  const at::Tensor tokens = written_tokens(stored);
  for (auto& [name, tensor] : stored) {
    if (name != "lm_head.weight" || tensor.size(0) != tokens.numel()) continue;
    const at::Tensor rows = at::searchsorted(draft_tokens(), tokens);
    tensor = lm_head_.detach().cpu().index_copy(0, rows, tensor.to(lm_head_.scalar_type()));
  }
  return stored;
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, Eagle3Options options) {
  const ModelConfig& target = context.target.config();
  OUTRIDER_TRY(const at::Tensor tokens, draft_tokens(context, options.unroll.draft_vocab,
                                                     std::min<int64_t>(32000, target.vocab_size / 2)));
  if (options.taps.empty()) {
    const int64_t layers = target.layer_count;
    // The published layers; in a small target they would coincide or leave out the last ones.
    options.taps = layers > 8 ? std::vector{int64_t{2}, layers / 2, layers - 3}
                              : std::vector{layers / 3, layers * 2 / 3, layers};
  }
  if (options.mask < 0) options.mask = target.vocab_size - 1;
  if (options.mask >= target.vocab_size) {
    return usage_error("--mask-token: a token of the target, below " + std::to_string(target.vocab_size) +
                       ", is expected, found " + std::to_string(options.mask));
  }
  return std::unique_ptr<DraftHead>(std::make_unique<Eagle3Head>(context, options, tokens));
}

void add_options(CLI::App& command, Eagle3Options& options) {
  command
      .add_option("--taps", options.taps,
                  "layers with an input that is tapped; default 2, L/2, L-3 of L layers; thirds up to 8")
      ->delimiter(',');
  add_draft_vocab_option(command, options.unroll.draft_vocab, "half of the vocabulary, at most 32000");
  add_loss_vocab_option(command, options.unroll.loss_vocab);
  add_unroll_options(command, options.unroll);
  add_decay_option(command, options.unroll);
  add_objective_option(command, options.unroll);
  command.add_flag("--fc-norm", options.norms_taps, "EAGLE-3.1: a norm of every tap before they are fused");
  command.add_flag("--norm-output", options.norms_output,
                   "EAGLE-3.1: the next level reads the normalised state");
  if (!options.is_parallel) return;
  command.add_option("--mask-token", options.mask,
                     "token at places to be drafted; -1: the vocabulary's last");
}

HeadRecipe recipe_of(Method method, const std::string& description, const Eagle3Options& defaults) {
  auto options = std::make_shared<Eagle3Options>(defaults);
  return {.command = method_key(method),
          .decoding_type = method,
          .description = description,
          .takes_any_target = true,
          .add_options = [options](CLI::App& command) { add_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace

HeadRecipe eagle3_recipe() {
  return recipe_of(Method::kEagle3,
                   "Train an EAGLE-3 head: one layer over several fused layers of the target", {});
}

HeadRecipe peagle_recipe() {
  return recipe_of(Method::kPEagle, "Train a P-EAGLE head: EAGLE-3 that drafts all levels in one pass",
                   {.unroll = {.growth = 0.0, .loss_vocab = 0}, .is_parallel = true});
}

}  // namespace outrider::training
