// SPDX-License-Identifier: Apache-2.0
#include "training/heads/dspark_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/block_backbone.h"
#include "training/heads/row_loss.h"

namespace outrider::training {
namespace {

struct DSparkOptions {
  BlockOptions block = {.block = 7};
  int64_t rank = 64;  // of the bias that the token before a place gives
  TokenAndDistance weights = {.token = 0.1, .distance = 0.9};
  double confidence_weight = 1.0;
};

class DSparkHead final : public DraftHead {
 public:
  DSparkHead(const HeadContext& context, const DSparkOptions& options);

  FeatureNeeds needs() const override { return backbone_.needs(); }
  NamedTensors parameters() const override;
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override {
    return {{"anchors", backbone_.options().anchors},
            {"gamma", backbone_.options().gamma},
            {"token_weight", options_.weights.token},
            {"distance_weight", options_.weights.distance},
            {"confidence_weight", options_.confidence_weight}};
  }

 private:
  // The inputs and lessons of all places of the blocks; all have windows * count * block rows.
  struct Places {
    at::Tensor before, wanted;  // int64: the tokens before and after the place
    at::Tensor truth;           // [rows, hidden]: the target's states that say the token after
    at::Tensor weight;          // f32
  };
  Places places(const HeadBatch& batch, const at::Tensor& anchors) const;
  // The mean cross-entropy between estimated and true shares of accepted drafts, f32 [rows].
  at::Tensor confidence_loss(const at::Tensor& states, const at::Tensor& latent, const at::Tensor& accepted,
                             const at::Tensor& weight) const;

  DSparkOptions options_;
  BlockBackbone backbone_;
  NamedTensors head_;  // the tensors beside the backbone's, in the order of HeadTensor
  enum HeadTensor : size_t { kBefore, kBias, kConfidence, kConfidenceBias };
  const at::Tensor& tensor(HeadTensor which) const { return head_[which].second; }
};

DSparkHead::DSparkHead(const HeadContext& context, const DSparkOptions& options)
    : options_(options), backbone_(context, options.block) {
  const ModelConfig& target = context.target.config();
  at::Generator generator = seeded_generator(context.options.seed + 1);
  constexpr double kDeviation = 0.02;
  head_ = {{"markov_head.markov_w1.weight",
            normal_weight({target.vocab_size, options.rank}, kDeviation, generator)},
           {"markov_head.markov_w2.weight", at::zeros({target.vocab_size, options.rank})},
           {"confidence_head.proj.weight", at::zeros({1, target.hidden_size + options.rank})},
           {"confidence_head.proj.bias", at::zeros({1})}};
  make_trainable(head_, backbone_.device());
}

NamedTensors DSparkHead::parameters() const {
  NamedTensors all = backbone_.parameters();
  all.insert(all.end(), head_.begin(), head_.end());
  return all;
}

DSparkHead::Places DSparkHead::places(const HeadBatch& batch, const at::Tensor& anchors) const {
  const int64_t windows = anchors.size(0), block = options_.block.block;
  const at::Tensor steps = at::arange(block, anchors.options());
  const at::Tensor at = (anchors.unsqueeze(2) + steps).view({windows, -1});  // [windows, count * block]
  const at::Tensor rows = at.unsqueeze(2).expand({windows, at.size(1), batch.hidden.size(2)});
  const at::Tensor decay = at::exp(steps.to(at::kFloat) / -options_.block.gamma)
                               .expand({windows, anchors.size(1), block})
                               .reshape(at.sizes());
  return {.before = batch.tokens.gather(1, at).flatten(),
          .wanted = batch.tokens.gather(1, at + 1).flatten(),
          .truth = batch.hidden.gather(1, rows).flatten(0, 1).to(backbone_.type()),
          .weight = (batch.counted.gather(1, at + 1) * decay).flatten()};
}

at::Tensor DSparkHead::confidence_loss(const at::Tensor& states, const at::Tensor& latent,
                                       const at::Tensor& accepted, const at::Tensor& weight) const {
  const at::Tensor inputs = at::cat({states.to(at::kFloat), latent}, 1);
  const at::Tensor logits = at::linear(inputs, tensor(kConfidence), tensor(kConfidenceBias)).squeeze(1);
  const at::Tensor losses = at::softplus(logits) - logits * accepted;
  return (losses * weight).sum() / weight.sum().clamp_min(1e-6);
}

// The bias of low rank joins the output head: logits are [states, w1[before]] [output head, w2]^T.
HeadLoss DSparkHead::loss(const HeadBatch& batch) const {
  const int64_t block = options_.block.block;
  const at::Tensor anchors = backbone_.anchors(batch, block);
  if (!anchors.defined()) return {.loss = backbone_.no_loss(), .depths = {}};
  const Places at = places(batch, anchors);
  const at::Tensor states = backbone_.states(batch, anchors);
  const at::Tensor latent = tensor(kBefore).index_select(0, at.before);
  const at::Tensor head = at::cat({backbone_.output_head(), tensor(kBias).to(backbone_.type())}, 1);
  const RowLoss drafts = mixed_loss(
      {.hidden = at::cat({states, latent.to(backbone_.type())}, 1), .head = head, .weight = at.weight},
      {.hidden = at.truth, .head = backbone_.output_head()}, at.wanted, options_.weights);
  HeadLoss result{.loss = drafts.loss + options_.confidence_weight *
                                            confidence_loss(states, latent, drafts.accepted, at.weight),
                  .depths = {}};
  const at::Tensor agrees = drafts.agrees.view({anchors.size(0), anchors.size(1), block});
  for (int64_t place = 0; batch.measures && place < block; ++place)
    result.depths.push_back({agrees.select(2, place), batch.counted.gather(1, anchors + (place + 1)), {}});
  return result;
}

HeadExport DSparkHead::exported() const {
  HeadExport result{.tensors = parameters(), .config = backbone_.config()};
  result.config["architectures"] = {"Qwen3DSparkModel"};
  result.config["mask_token_id"] = backbone_.options().mask;
  result.config["target_layer_ids"] = backbone_.options().ids;
  result.config["markov_rank"] = options_.rank;
  result.config["markov_head_type"] = "vanilla";
  result.config["enable_confidence_head"] = true;
  result.config["confidence_head_with_markov"] = true;
  return result;
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, DSparkOptions options) {
  OUTRIDER_TRY(options.block, completed(options.block, context.target.config()));
  return std::unique_ptr<DraftHead>(std::make_unique<DSparkHead>(context, options));
}

void add_options(CLI::App& command, DSparkOptions& options) {
  add_block_options(command, options.block);
  command.add_option("--rank", options.rank, "rank of the bias by the token before a place")
      ->check(CLI::PositiveNumber);
  command.add_option("--token-weight", options.weights.token, "weight of the text's tokens")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--distance-weight", options.weights.distance,
                  "weight of the distance from the target's distribution")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--confidence-weight", options.confidence_weight,
                  "weight of the estimate of a place's acceptance")
      ->check(CLI::NonNegativeNumber);
}

}  // namespace

HeadRecipe dspark_recipe() {
  auto options = std::make_shared<DSparkOptions>();
  return {.command = method_key(Method::kDSpark),
          .decoding_type = Method::kDSpark,
          .description = "Train a DSpark drafter: a block with places that know the token before them",
          .add_options = [options](CLI::App& command) { add_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace outrider::training
