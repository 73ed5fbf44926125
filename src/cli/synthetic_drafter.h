// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "outrider/drafter.h"
#include "speculation/tree/level_time.h"

namespace outrider {

// Runs another drafter and replaces its proposals, so that its cost can be measured at any acceptance rate
// without trained weights. A drafted token after right ones becomes the target's own token with probability
// `rate` and a different one otherwise. Tokens after a wrong one stay as proposed. The inner drafter drafts
// one level at a time and sees the replaced tokens, so it runs the passes that a drafter of that quality
// would run. It drafts a chain, or where there is room for more nodes than levels, a tree: each level has
// further proposals of the inner drafter beside the replaced one, all of them wrong. Nodes have the
// probability that the rate gives them, as with a drafter of that quality. Where the policy asks, a level
// that should not be worth its time ends the draft, as it would in the inner drafter.
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
  // A sequence and its chain of replaced tokens while they are drafted.
  struct Growing {
    DraftRequest request;
    std::vector<TokenId> tokens;  // committed tokens, then the chain
    int end = 0;                  // node of the chain's last token
    double reached = 1;           // estimated probability that the chain is accepted
    TokenTree* tree = nullptr;

    // Nodes of a level.
    int width() const { return std::max(1, request.max_nodes / request.max_draft_len); }
    int depth() const { return std::min(request.max_draft_len, request.max_nodes); }
  };

  // The inner drafter's next level of every chain. Learns how long levels take.
  Status draft_level(std::span<const Growing> growing, std::vector<TokenTree>& proposals);
  void add_level(Growing& one, const TokenTree& proposals) const;
  bool wants_level(const Growing& one) const;
  // The token that the target will choose after `tokens`, if it is known.
  std::optional<TokenId> right_after(std::span<const TokenId> tokens) const;
  TokenId replaced(const Growing& one, TokenId right, TokenId proposed) const;

  std::shared_ptr<Drafter> inner_;
  DrafterTraits traits_;
  double rate_;
  int64_t vocab_size_;
  LevelTime level_time_;  // of one chain, but for first levels, which read what was missed
  std::vector<TokenId> expected_;
};

}  // namespace outrider
