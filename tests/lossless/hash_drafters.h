// SPDX-License-Identifier: Apache-2.0
// Drafters for runs on the hash model: some know the right text, some its distributions, some misbehave.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "drafters/registry.h"
#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "tests/lossless/hash_model.h"

namespace outrider {

// Knows the right continuations and errs at a given rate; grows chains or random trees, and misbehaves on
// demand.
class OracleDrafter final : public Drafter {
 public:
  OracleDrafter(double error_rate, bool branches, bool hostile, uint32_t seed)
      : error_rate_(error_rate), branches_(branches), hostile_(hostile), random_(seed) {}

  void know(const std::vector<TokenId>& prompt, const std::vector<TokenId>& output);
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;

 private:
  void grow(const DraftRequest& request, TokenTree& tree);

  DrafterTraits traits_{.name = "Oracle"};
  double error_rate_;
  bool branches_;
  bool hostile_;
  std::mt19937 random_;
  std::vector<std::vector<TokenId>> continuations_;
};

// Grows trees as drafters with probabilities do, by the model's own logits or, at a given rate, by wrong
// ones. Several of these drafters share a tree.
std::shared_ptr<Drafter> hash_drafter(const SpeculativeOptions& options, double error_rate, int members,
                                      bool has_state);

// A draft model that runs out of memory in every seventh pass.
class FailingModel final : public HashModel {
 public:
  using HashModel::HashModel;
  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override;

 private:
  int passes_ = 0;
};

// Counts of trees compared with the trees that the model grows over whole texts, without a cache.
struct DraftComparison {
  int64_t trees = 0;
  int64_t differing = 0;
};

// DraftTarget with that model, which has a separate KV cache. A wrong entry there changes no output, but
// lowers the acceptance. `comparison` must outlive it.
std::shared_ptr<Drafter> hash_draft_target(std::unique_ptr<HashModel> model,
                                           const SpeculativeOptions& options, const DrafterContext& context,
                                           DraftComparison& comparison);

// A drafter with trees that are changed after it has computed them.
std::shared_ptr<Drafter> meddled(std::shared_ptr<Drafter> drafter, uint32_t seed);

}  // namespace outrider
