// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "outrider/drafter.h"

namespace outrider {

// Passes all calls on to another drafter; tests override some to change or watch them.
class DrafterWrapper : public Drafter {
 public:
  explicit DrafterWrapper(std::shared_ptr<Drafter> drafter) : drafter_(std::move(drafter)) {}

  const DrafterTraits& traits() const override { return drafter_->traits(); }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override {
    drafter_->begin(sequence, prompt, scope);
  }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    return drafter_->draft(requests, trees);
  }
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override {
    drafter_->observe(sequence, tree, verdict);
  }
  void absorb(std::span<const CommittedFeatures> committed) override { drafter_->absorb(committed); }
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) override {
    return drafter_->restore(sequence, tokens, scope, limit_ms);
  }
  bool save(bool everything) override { return drafter_->save(everything); }
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override {
    return drafter_->known_tokens(tokens, scope);
  }
  void end(uint64_t sequence) override { drafter_->end(sequence); }
  DrafterMemory memory() const override { return drafter_->memory(); }

 private:
  std::shared_ptr<Drafter> drafter_;
};

}  // namespace outrider
