// SPDX-License-Identifier: Apache-2.0
#include "training/heads/medusa_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "config/methods.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/row_loss.h"

namespace outrider::training {
namespace {

struct MedusaOptions {
  int64_t heads = 4;
  double decay = 0.8;  // weight of head k is decay^k
};

class MedusaHead final : public DraftHead {
 public:
  MedusaHead(const HeadContext& context, const MedusaOptions& options);

  FeatureNeeds needs() const override { return {}; }
  NamedTensors parameters() const override;
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override { return {{"decay", options_.decay}}; }

 private:
  struct Head {
    at::Tensor weight, bias;  // residual block: x + silu(weight x + bias)
    at::Tensor output;        // [vocab, hidden]
  };

  // f32 [ranks]: share of the counted rows where the token is the head's guess number i.
  at::Tensor rank_shares(const at::Tensor& hidden, const at::Tensor& output, const at::Tensor& tokens,
                         const at::Tensor& counts) const;

  MedusaOptions options_;
  at::ScalarType type_;
  ModelConfig target_;
  std::vector<Head> heads_;
};

// Every head begins as the target's own output head, as in the paper.
MedusaHead::MedusaHead(const HeadContext& context, const MedusaOptions& options)
    : options_(options), type_(context.options.products), target_(context.target.config()) {
  const int64_t hidden = target_.hidden_size;
  const at::Tensor output = context.target.output_head().to(context.device);
  const auto on_device = at::TensorOptions().device(context.device);
  for (int64_t k = 0; k < options.heads; ++k) {
    heads_.push_back({.weight = at::zeros({hidden, hidden}, on_device),
                      .bias = at::zeros({hidden}, on_device),
                      .output = output.clone()});
  }
  for (auto& [name, tensor] : parameters()) tensor.requires_grad_(true);
}

NamedTensors MedusaHead::parameters() const {
  NamedTensors named;
  for (size_t k = 0; k < heads_.size(); ++k) {
    const std::string prefix = std::to_string(k) + ".";
    named.emplace_back(prefix + "0.linear.weight", heads_[k].weight);
    named.emplace_back(prefix + "0.linear.bias", heads_[k].bias);
    named.emplace_back(prefix + "1.weight", heads_[k].output);
  }
  return named;
}

HeadLoss MedusaHead::loss(const HeadBatch& batch) const {
  const at::Tensor hidden = batch.hidden.flatten(0, 1).to(type_);
  HeadLoss result{.loss = at::zeros({}, batch.counted.options()), .depths = {}};
  for (size_t k = 0; k < heads_.size(); ++k) {
    const Head& head = heads_[k];
    const auto ahead = static_cast<int64_t>(k) + 2;  // row t predicts token t + ahead
    const at::Tensor counts = shifted(batch.counted, ahead);
    const at::Tensor block = hidden + at::silu(product(hidden, head.weight) + head.bias.to(type_));
    const at::Tensor tokens = shifted(batch.tokens, ahead).flatten();
    const RowLoss row =
        token_loss({.hidden = block, .head = head.output.to(type_), .weight = counts.flatten()}, tokens);
    result.loss = result.loss + std::pow(options_.decay, static_cast<double>(k)) * row.loss;
    result.depths.push_back(
        {row.agrees.view(counts.sizes()), counts,
         batch.measures ? rank_shares(block, head.output, tokens, counts) : at::Tensor()});
  }
  return result;
}

at::Tensor MedusaHead::rank_shares(const at::Tensor& hidden, const at::Tensor& output,
                                   const at::Tensor& tokens, const at::Tensor& counts) const {
  constexpr int64_t kRanks = 10;
  const at::Tensor index = counts.flatten().nonzero().squeeze(1);
  const at::Tensor logits = product(hidden.index_select(0, index), output);
  const at::Tensor guesses = std::get<1>(logits.topk(std::min(kRanks, logits.size(1)), -1));
  const at::Tensor hits = guesses.eq(tokens.index_select(0, index).unsqueeze(1)).to(at::kFloat).sum(0);
  return hits / static_cast<double>(std::max<int64_t>(1, index.numel()));
}

HeadExport MedusaHead::exported() const {
  return {.tensors = parameters(),
          .config = {{"architectures", {"MedusaModel"}},
                     {"model_type", "medusa"},
                     {"hidden_size", target_.hidden_size},
                     {"vocab_size", target_.vocab_size},
                     {"medusa_num_heads", options_.heads},
                     {"medusa_num_layers", 1},
                     {"torch_dtype", "bfloat16"}}};
}

}  // namespace

HeadRecipe medusa_recipe() {
  auto options = std::make_shared<MedusaOptions>();
  return {.command = method_key(Method::kMedusa),
          .decoding_type = Method::kMedusa,
          .description = "Train Medusa heads: one for each of the next tokens but one",
          .ranks_key = "medusa_accuracies",
          .add_options =
              [options](CLI::App& command) {
                command.add_option("--heads", options->heads, "number of heads, one per predicted token")
                    ->check(CLI::Range(1, 16));
                command
                    .add_option("--decay", options->decay, "weight of each head relative to the one before")
                    ->check(CLI::Range(0.0, 1.0));
              },
          .make = [options](const HeadContext& context) -> Result<std::unique_ptr<DraftHead>> {
            return std::unique_ptr<DraftHead>(std::make_unique<MedusaHead>(context, *options));
          }};
}

}  // namespace outrider::training
