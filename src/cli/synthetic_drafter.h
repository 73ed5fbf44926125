// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "outrider/drafter.h"

namespace outrider {

// Runs another drafter and replaces its proposals, so that its cost can be measured at any acceptance rate
// without trained weights. A drafted token after right ones becomes the target's own token with probability
// `rate` and a different one otherwise. Tokens after a wrong one stay as proposed. The inner drafter drafts
// one level at a time and sees the replaced tokens, so it runs the passes that a drafter of that quality
// would run. Only for chains.
class SyntheticDrafter final : public Drafter {
 public:
  SyntheticDrafter(std::shared_ptr<Drafter> inner, double rate, int64_t vocab_size);

  // Sets the target's own continuation of a prompt: prompt and output. Sequences that are no beginning of it
  // keep the inner drafter's proposals.
  void expect(std::vector<TokenId> tokens) { expected_ = std::move(tokens); }

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override {
    inner_->begin(sequence, prompt, scope);
  }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override {
    inner_->observe(sequence, tree, verdict);
  }
  void end(uint64_t sequence) override { inner_->end(sequence); }

 private:
  // `tokens`: the tokens of the request followed by the chain so far.
  TokenId replaced(const DraftRequest& request, std::span<const TokenId> tokens, TokenId proposed) const;

  std::shared_ptr<Drafter> inner_;
  DrafterTraits traits_;
  double rate_;
  int64_t vocab_size_;
  std::vector<TokenId> expected_;
};

}  // namespace outrider
