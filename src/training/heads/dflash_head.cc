// SPDX-License-Identifier: Apache-2.0
#include "training/heads/dflash_head.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "config/methods.h"
#include "training/core/autograd_ops.h"
#include "training/heads/block_backbone.h"
#include "training/heads/row_loss.h"

namespace outrider::training {
namespace {

class DFlashHead final : public DraftHead {
 public:
  DFlashHead(const HeadContext& context, const BlockOptions& options) : backbone_(context, options) {}

  FeatureNeeds needs() const override { return backbone_.needs(); }
  NamedTensors parameters() const override { return backbone_.parameters(); }
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override {
    return {{"anchors", backbone_.options().anchors}, {"gamma", backbone_.options().gamma}};
  }

 private:
  BlockBackbone backbone_;
};

HeadLoss DFlashHead::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const int64_t block = backbone_.options().block;
  const at::Tensor anchors = backbone_.anchors(batch, block - 1), &head = backbone_.output_head();
  if (!anchors.defined()) return {.loss = backbone_.no_loss(), .depths = {}};
  const int64_t count = anchors.size(1);
  const at::Tensor output = backbone_.states(batch, anchors).view({windows, count, block, -1});
  std::vector<at::Tensor> parts, texts, weights;
  for (int64_t place = 1; place < block; ++place) {
    parts.push_back(output.select(2, place).reshape({windows * count, -1}));
    texts.push_back(batch.tokens.gather(1, anchors + place).flatten());
    weights.push_back(batch.counted.gather(1, anchors + place).flatten() *
                      std::exp(-static_cast<double>(place - 1) / backbone_.options().gamma));
  }
  HeadLoss result{
      .loss = token_loss({.hidden = at::cat(parts), .head = head, .weight = at::cat(weights)}, at::cat(texts))
                  .loss,
      .depths = {}};
  if (!batch.measures) return result;
  const at::Tensor truth =
      likeliest_tokens(batch.hidden.flatten(0, 1).to(backbone_.type()), head).view({windows, length});
  for (int64_t place = 1; place < block; ++place) {
    const at::Tensor found = likeliest_tokens(parts[static_cast<size_t>(place - 1)], head);
    const at::Tensor agrees =
        found.view({windows, count}).eq(truth.gather(1, anchors + (place - 1))).to(at::kFloat);
    result.depths.push_back({agrees, batch.counted.gather(1, anchors + place), {}});
  }
  return result;
}

HeadExport DFlashHead::exported() const {
  HeadExport result{.tensors = parameters(), .config = backbone_.config()};
  result.config["architectures"] = {"DFlashDraftModel"};
  result.config["dflash_config"] = {{"mask_token_id", backbone_.options().mask},
                                    {"target_layer_ids", backbone_.options().ids}};
  return result;
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, const BlockOptions& given) {
  OUTRIDER_TRY(const BlockOptions options, completed(given, context.target.config()));
  return std::unique_ptr<DraftHead>(std::make_unique<DFlashHead>(context, options));
}

}  // namespace

HeadRecipe dflash_recipe() {
  auto options = std::make_shared<BlockOptions>();
  return {.command = method_key(Method::kDFlash),
          .decoding_type = Method::kDFlash,
          .description = "Train a DFlash drafter: one pass for a block of tokens",
          .add_options = [options](CLI::App& command) { add_block_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace outrider::training
