// SPDX-License-Identifier: Apache-2.0
#include "training/heads/mtp_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"
#include "training/heads/recurrent_head.h"
#include "training/heads/vocabulary/draft_vocabulary.h"

namespace outrider::training {
namespace {

class MtpHead final : public RecurrentHead {
 public:
  MtpHead(const HeadContext& context, const UnrollOptions& options, const at::Tensor& draft_tokens);

  FeatureNeeds needs() const override { return {.likeliest = draft_tokens().defined()}; }
  NamedTensors parameters() const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override { return unroll_fingerprint(); }

 protected:
  at::Tensor first_state(const HeadBatch& batch) const override { return batch.hidden.flatten(0, 1); }
  Outputs step(const at::Tensor& state, const at::Tensor& embeddings, const UnrolledLayer& place,
               UnrolledMemory& memory) const override;
  const LayerWeights& layer() const override { return layer_; }

 private:
  std::string prefix() const { return "model.layers." + std::to_string(target_.layer_count) + "."; }

  ModelConfig target_;
  at::Tensor embedding_norm_, hidden_norm_, eh_proj_, norm_;
  LayerWeights layer_;
};

// Begins as the target's own last layer and final norm on the mean of both inputs.
MtpHead::MtpHead(const HeadContext& context, const UnrollOptions& options, const at::Tensor& draft_tokens)
    : RecurrentHead(context, options, draft_tokens), target_(context.target.config()) {
  const FrozenTarget& target = context.target;
  const int64_t hidden = target_.hidden_size;
  at::Generator generator = seeded_generator(context.options.seed);
  constexpr double kDeviation = 0.02;
  embedding_norm_ = at::ones({hidden});
  hidden_norm_ = at::ones({hidden});
  eh_proj_ = normal_weight({hidden, 2 * hidden}, kDeviation, generator);
  eh_proj_.narrow(1, 0, hidden).add_(at::eye(hidden) * 0.5);
  eh_proj_.narrow(1, hidden, hidden).add_(at::eye(hidden) * 0.5);
  layer_ = target.layer(target_.layer_count - 1);
  if (shape().ffn != target_.ffn_size) resize_mlp(layer_, shape().ffn, generator);
  norm_ = target.weight("model.norm.weight");
  make_trainable(parameters(), context.device);
}

NamedTensors MtpHead::parameters() const {
  NamedTensors named = {{prefix() + "enorm.weight", embedding_norm_},
                        {prefix() + "hnorm.weight", hidden_norm_},
                        {prefix() + "eh_proj.weight", eh_proj_}};
  append_layer(layer_, prefix(), named);
  named.emplace_back(prefix() + "shared_head.norm.weight", norm_);
  return named;
}

RecurrentHead::Outputs MtpHead::step(const at::Tensor& state, const at::Tensor& embeddings,
                                     const UnrolledLayer& place, UnrolledMemory& memory) const {
  const double epsilon = shape().epsilon;
  const at::Tensor both = at::cat({normalized(embeddings.to(at::kFloat), embedding_norm_, epsilon, type()),
                                   normalized(state, hidden_norm_, epsilon, type())},
                                  1);
  const at::Tensor x = product(both, eh_proj_).to(at::kFloat);
  const LayerOutput output = place.run(x, normalized(x, layer_.input_norm, epsilon, type()), memory);
  const NormedResidual last = residual_norm(output.x, output.delta, norm_, epsilon);
  return {.state = last.sum, .normed = last.normed};
}

HeadExport MtpHead::exported() const {
  HeadExport result{.tensors = parameters(), .config = layer_config(target_, shape())};
  result.config["architectures"] = {"DeepSeekMTPModel"};
  result.config["model_type"] = "deepseek_mtp";
  result.config["num_hidden_layers"] = target_.layer_count;
  result.config["num_nextn_predict_layers"] = 1;
  append_vocabulary_map(draft_tokens(), target_.vocab_size, result);
  return result;
}

}  // namespace

HeadRecipe mtp_recipe() {
  auto options = std::make_shared<UnrollOptions>();
  return {.command = method_key(Method::kMtp),
          .decoding_type = Method::kMtp,
          .description = "Train a multi-token prediction module, used again for every token",
          .add_options =
              [options](CLI::App& command) {
                add_unroll_options(command, *options);
                add_decay_option(command, *options);
                add_objective_option(command, *options);
                add_draft_vocab_option(command, options->draft_vocab, "all");
                add_loss_vocab_option(command, options->loss_vocab);
              },
          .make = [options](const HeadContext& context) -> Result<std::unique_ptr<DraftHead>> {
            const int64_t vocab = context.target.config().vocab_size;
            OUTRIDER_TRY(const at::Tensor tokens,
                         training::draft_tokens(context, options->draft_vocab, vocab));
            return std::unique_ptr<DraftHead>(std::make_unique<MtpHead>(context, *options, tokens));
          }};
}

}  // namespace outrider::training
