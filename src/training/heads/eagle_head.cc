// SPDX-License-Identifier: Apache-2.0
#include "training/heads/eagle_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "config/methods.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_export.h"
#include "training/heads/recurrent_head.h"
#include "training/heads/vocabulary/draft_vocabulary.h"

namespace outrider::training {
namespace {

struct EagleOptions {
  UnrollOptions unroll = {.steps = 1, .decay = 0.8, .distribution_weight = 0.1, .feature_weight = 1.0};
  // Width of the uniform noise on features for windows of 512 tokens; shorter windows get wider noise.
  double noise = 0.2;
};

class EagleHead final : public RecurrentHead {
 public:
  EagleHead(const HeadContext& context, const EagleOptions& options, const at::Tensor& draft_tokens);

  FeatureNeeds needs() const override { return {.likeliest = draft_tokens().defined()}; }
  NamedTensors parameters() const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override;

 protected:
  at::Tensor first_state(const HeadBatch& batch) const override;
  Outputs step(const at::Tensor& state, const at::Tensor& embeddings, const UnrolledLayer& place,
               UnrolledMemory& memory) const override;
  const LayerWeights& layer() const override { return layer_; }

 private:
  double noise_;
  ModelConfig target_;
  at::Tensor fc_, fc_bias_;
  LayerWeights layer_;
};

// At the beginning the layer returns the target's state unchanged.
EagleHead::EagleHead(const HeadContext& context, const EagleOptions& options, const at::Tensor& draft_tokens)
    : RecurrentHead(context, options.unroll, draft_tokens),
      noise_(options.noise),
      target_(context.target.config()) {
  const int64_t hidden = target_.hidden_size;
  at::Generator generator = seeded_generator(context.options.seed);
  constexpr double kDeviation = 0.02;
  fc_ = normal_weight({hidden, 2 * hidden}, kDeviation, generator);
  fc_.narrow(1, hidden, hidden).add_(at::eye(hidden));
  fc_bias_ = at::zeros({hidden});
  layer_ = initial_layer(shape(), /*has_input_norm=*/false, generator);
  make_trainable(parameters(), context.device);
}

NamedTensors EagleHead::parameters() const {
  NamedTensors named = {{"fc.weight", fc_}, {"fc.bias", fc_bias_}};
  append_layer(layer_, "layers.0.", named);
  return named;
}

nlohmann::json EagleHead::fingerprint() const {
  nlohmann::json facts = unroll_fingerprint();
  facts["noise"] = noise_;
  return facts;
}

at::Tensor EagleHead::first_state(const HeadBatch& batch) const {
  const at::Tensor states = batch.hidden.flatten(0, 1);
  if (noise_ == 0.0 || batch.measures) return states;
  constexpr double kFullLength = 512.0;
  const double width = noise_ * kFullLength / static_cast<double>(batch.tokens.size(1));
  at::Generator generator = seeded_generator(batch.seed);
  const at::Tensor noise = at::rand(states.sizes(), generator, at::TensorOptions().dtype(at::kFloat));
  return states + (noise.to(states.device()) - 0.5) * width;
}

RecurrentHead::Outputs EagleHead::step(const at::Tensor& state, const at::Tensor& embeddings,
                                       const UnrolledLayer& place, UnrolledMemory& memory) const {
  const at::Tensor input = product(at::cat({embeddings, state.to(type())}, 1), fc_) + fc_bias_.to(type());
  const LayerOutput output = place.run(input.to(at::kFloat), input, memory);
  const at::Tensor next = output.x + output.delta.to(at::kFloat);
  return {.state = next, .normed = next.to(type())};
}

HeadExport EagleHead::exported() const {
  HeadExport result{.tensors = parameters(), .config = layer_config(target_, shape())};
  result.config["architectures"] = {"LlamaForCausalLMEagle"};
  result.config["model_type"] = "llama";
  result.config["num_hidden_layers"] = 1;
  result.config["bias"] = true;
  append_vocabulary_map(draft_tokens(), target_.vocab_size, result);
  return result;
}

}  // namespace

HeadRecipe eagle_recipe() {
  auto options = std::make_shared<EagleOptions>();
  return {.command = method_key(Method::kEagle),
          .decoding_type = Method::kEagle,
          .description = "Train an EAGLE head (EAGLE-1, EAGLE-2): one layer that predicts hidden states",
          .add_options =
              [options](CLI::App& command) {
                add_unroll_options(command, options->unroll);
                add_draft_vocab_option(command, options->unroll.draft_vocab, "all");
                add_loss_vocab_option(command, options->unroll.loss_vocab);
                command
                    .add_option("--distribution-weight", options->unroll.distribution_weight,
                                "weight of the KL divergence from the target's distribution")
                    ->check(CLI::NonNegativeNumber);
                command
                    .add_option("--noise", options->noise, "width of the noise on features, at 512 tokens")
                    ->check(CLI::NonNegativeNumber);
              },
          .make = [options](const HeadContext& context) -> Result<std::unique_ptr<DraftHead>> {
            const int64_t vocab = context.target.config().vocab_size;
            OUTRIDER_TRY(const at::Tensor tokens,
                         training::draft_tokens(context, options->unroll.draft_vocab, vocab));
            return std::unique_ptr<DraftHead>(std::make_unique<EagleHead>(context, *options, tokens));
          }};
}

}  // namespace outrider::training
