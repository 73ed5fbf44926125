// SPDX-License-Identifier: Apache-2.0
#include "training/heads/eagle3_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>

#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/core/safetensors_file.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"
#include "training/heads/recurrent_head.h"

namespace outrider::training {
namespace {

struct Eagle3Options {
  std::vector<int64_t> taps = {};            // empty: 2, L/2, L-3, or thirds
  at::Tensor first_tokens = {};              // those that the head to begin with can draft
  int64_t draft_vocab = 0;                   // 0: as first_tokens, or half of the vocabulary, at most 32000
  UnrollOptions unroll = {.loss_vocab = 0};  // it compares all tokens that it can draft
  bool is_parallel = false;                  // P-EAGLE
  int64_t mask = -1;  // its token at places to be drafted; -1: the last of the vocabulary
};

class Eagle3Head final : public RecurrentHead {
 public:
  Eagle3Head(const HeadContext& context, const Eagle3Options& options);

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
  at::Tensor draft_head(const LossTokens& /*all*/) const override { return lm_head_.to(type()); }
  LossTokens loss_tokens(const HeadBatch& /*batch*/) const override { return {draft_tokens_, {}}; }

 private:
  Eagle3Options options_;
  ModelConfig target_;
  at::Tensor draft_tokens_;  // int64 [draft vocabulary], in rising order
  at::Tensor fc_, hidden_norm_, norm_, lm_head_;
  at::Tensor
      mask_hidden_;  // [1, 1, taps * hidden]: features at places to be drafted; undefined: not parallel
  LayerWeights layer_;
};

// The first tokens, then the most frequent ones.
at::Tensor draft_tokens(std::vector<int64_t> counts, const Eagle3Options& options) {
  const at::Tensor& first = options.first_tokens;
  for (int64_t i = 0; first.defined() && i < first.numel(); ++i)
    counts[static_cast<size_t>(first.data_ptr<int64_t>()[i])] = std::numeric_limits<int64_t>::max();
  return frequent_tokens(counts, options.draft_vocab);
}

// Begins as the target's own last layer, norm and head on the last tap; training adds the information of the
// other taps and of the next token's embedding.
Eagle3Head::Eagle3Head(const HeadContext& context, const Eagle3Options& options)
    : RecurrentHead(context, options.unroll), options_(options), target_(context.target.config()) {
  const FrozenTarget& target = context.target;
  const int64_t hidden = target_.hidden_size, taps = std::ssize(options_.taps);
  draft_tokens_ = draft_tokens(context.token_counts, options_).to(context.device);
  mutable_shape().input = 2 * hidden;
  at::Generator generator = seeded_generator(context.options.seed);
  constexpr double kDeviation = 0.02;
  fc_ = normal_weight({hidden, taps * hidden}, kDeviation, generator);
  fc_.narrow(1, (taps - 1) * hidden, hidden).add_(at::eye(hidden));
  layer_ = target.layer(target_.layer_count - 1);
  if (shape().ffn != target_.ffn_size) resize_mlp(layer_, shape().ffn, generator);
  hidden_norm_ = layer_.input_norm.clone();
  layer_.input_norm.fill_(1.0);
  for (at::Tensor* weight : {&layer_.q, &layer_.k, &layer_.v})
    *weight = at::cat({normal_weight(weight->sizes(), kDeviation, generator), *weight}, 1);
  norm_ = target.weight("model.norm.weight");
  lm_head_ = target.output_head().index_select(0, draft_tokens_.cpu());
  if (options_.is_parallel) mask_hidden_ = normal_weight({1, 1, taps * hidden}, kDeviation, generator);
  make_trainable(parameters(), context.device);
}

NamedTensors Eagle3Head::parameters() const {
  NamedTensors named = {{"fc.weight", fc_}, {"midlayer.hidden_norm.weight", hidden_norm_}};
  append_layer(layer_, "midlayer.", named);
  named.emplace_back("norm.weight", norm_);
  named.emplace_back("lm_head.weight", lm_head_);
  if (mask_hidden_.defined()) named.emplace_back("mask_hidden", mask_hidden_);
  return named;
}

RecurrentHead::MaskedPlace Eagle3Head::masked_place() const {
  if (!mask_hidden_.defined()) return {};
  return {.state = product(mask_hidden_.flatten(0, 1).to(type()), fc_).to(at::kFloat),
          .token = options_.mask};
}

at::Tensor Eagle3Head::first_state(const HeadBatch& batch) const {
  const at::Tensor features = batch.features.flatten(0, 1).to(type());
  return product(features, fc_).to(at::kFloat);
}

RecurrentHead::Outputs Eagle3Head::step(const at::Tensor& state, const at::Tensor& embeddings,
                                        const UnrolledLayer& place, UnrolledMemory& memory) const {
  const double epsilon = shape().epsilon;
  const at::Tensor input = at::cat({normalized(embeddings.to(at::kFloat), layer_.input_norm, epsilon, type()),
                                    normalized(state, hidden_norm_, epsilon, type())},
                                   1);
  const LayerOutput output = place.run(state, input, memory);
  const NormedResidual last = residual_norm(output.x, output.delta, norm_, epsilon);
  return {.state = last.sum, .normed = last.normed};
}

HeadExport Eagle3Head::exported() const {
  HeadExport result{.tensors = parameters(), .config = layer_config(target_, shape())};
  const at::Tensor ids = draft_tokens_.cpu();
  result.tensors.emplace_back("d2t", ids - at::arange(ids.numel(), at::kLong));
  result.tensors.emplace_back("t2d", at::zeros({target_.vocab_size}, at::kBool).index_fill_(0, ids, true));
  result.config["architectures"] = {"LlamaForCausalLMEagle3"};
  result.config["model_type"] = "llama";
  result.config["num_hidden_layers"] = 1;
  result.config["draft_vocab_size"] = options_.draft_vocab;
  result.config["tie_word_embeddings"] = false;
  result.config["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", options_.taps},
                                   {"use_aux_hidden_state", true}};
  if (options_.is_parallel) result.config["ptd_token_id"] = options_.mask;
  return result;
}

// The tokens that a written head can draft, int64 [draft vocabulary]; undefined: it does not say.
at::Tensor written_tokens(const NamedTensors& stored) {
  for (const auto& [name, tensor] : stored) {
    if (name == "d2t" && tensor.scalar_type() == at::kLong && tensor.dim() == 1)
      return tensor + at::arange(tensor.numel(), at::kLong);
  }
  return {};
}

// Tokens that the written head cannot draft keep the rows of the target's output head.
NamedTensors Eagle3Head::fitted(NamedTensors stored) const {
  const at::Tensor tokens = written_tokens(stored);
  for (auto& [name, tensor] : stored) {
    if (name != "lm_head.weight" || tensor.size(0) != tokens.numel()) continue;
    const at::Tensor rows = at::searchsorted(draft_tokens_.cpu(), tokens);
    tensor = lm_head_.detach().cpu().index_copy(0, rows, tensor.to(lm_head_.scalar_type()));
  }
  return stored;
}

Status take_first_tokens(const std::filesystem::path& folder, int64_t vocab, Eagle3Options& options) {
  const std::filesystem::path path = folder / "model.safetensors";
  OUTRIDER_TRY(const NamedTensors stored, read_safetensors(path));
  options.first_tokens = written_tokens(stored);
  const at::Tensor& tokens = options.first_tokens;
  if (!tokens.defined() || tokens.numel() == 0 || tokens.min().item<int64_t>() < 0 ||
      tokens.max().item<int64_t>() >= vocab) {
    return usage_error("--init: " + path.string() +
                       ": expected a tensor d2t of an EAGLE-3 head for this target");
  }
  if (options.draft_vocab == 0) options.draft_vocab = tokens.numel();
  if (options.draft_vocab >= tokens.numel()) return {};
  return usage_error("--draft-vocab: at least the " + std::to_string(tokens.numel()) +
                     " tokens of --init are expected, found " + std::to_string(options.draft_vocab));
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, Eagle3Options options) {
  const ModelConfig& target = context.target.config();
  if (!context.options.init.empty()) {
    OUTRIDER_RETURN_IF_ERROR(take_first_tokens(context.options.init, target.vocab_size, options));
  }
  if (options.taps.empty()) {
    const int64_t layers = target.layer_count;
    // The published layers; in a small target they would coincide or leave out the last ones.
    options.taps = layers > 8 ? std::vector{int64_t{2}, layers / 2, layers - 3}
                              : std::vector{layers / 3, layers * 2 / 3, layers};
  }
  if (options.draft_vocab == 0) options.draft_vocab = std::min<int64_t>(32000, target.vocab_size / 2);
  if (options.draft_vocab > target.vocab_size) {
    return usage_error("--draft-vocab: at most the target's " + std::to_string(target.vocab_size) +
                       " tokens are expected, found " + std::to_string(options.draft_vocab));
  }
  if (options.mask < 0) options.mask = target.vocab_size - 1;
  if (options.mask >= target.vocab_size) {
    return usage_error("--mask-token: a token of the target, below " + std::to_string(target.vocab_size) +
                       ", is expected, found " + std::to_string(options.mask));
  }
  return std::unique_ptr<DraftHead>(std::make_unique<Eagle3Head>(context, options));
}

void add_options(CLI::App& command, Eagle3Options& options) {
  command
      .add_option("--taps", options.taps,
                  "layers whose input is tapped; default 2, L/2, L-3 of L layers; thirds up to 8")
      ->delimiter(',');
  command
      .add_option(
          "--draft-vocab", options.draft_vocab,
          "most frequent tokens that it can draft, besides those of --init; 0: those alone, or half of "
          "the vocabulary, at most 32000")
      ->check(CLI::NonNegativeNumber);
  add_unroll_options(command, options.unroll);
  add_decay_option(command, options.unroll);
  if (!options.is_parallel) return;
  command.add_option("--mask-token", options.mask,
                     "token at places to be drafted; -1: the vocabulary's last");
}

HeadRecipe recipe_of(Method method, const std::string& description, const Eagle3Options& defaults) {
  auto options = std::make_shared<Eagle3Options>(defaults);
  return {.command = method_key(method),
          .decoding_type = method,
          .description = description,
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
