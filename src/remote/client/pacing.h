// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "outrider/token_tree.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {

// The pace of a session: the time that rounds over the network take, and the tokens that they bring. It says
// how much more drafting pays. Old rounds fade.
class Pacing {
 public:
  void on_draft(double ms) { draft_ms_ = ms; }
  // `tree` became these tokens; its verdict took `waited_ms`, and `round_ms` passed since the one before.
  void on_verdict(const TokenTree& tree, std::span<const TokenId> tokens, double waited_ms, double round_ms) {
    estimates_.learn(tree, tokens);
    waited_ms_ = waited_ms;
    tokens_ = kKept * tokens_ + static_cast<double>(tokens.size());
    rounds_ms_ = kKept * rounds_ms_ + round_ms;
    ++rounds_;
  }

  // Tokens per millisecond, the price of time for DraftRequest::rate; 0: not yet known.
  double rate() const { return rounds_ < kFirstRounds ? 0.0 : tokens_ / std::max(rounds_ms_, 1e-3); }
  const AcceptanceEstimates& estimates() const { return estimates_; }
  // A tree can be drafted while a verdict travels.
  bool has_time_ahead() const { return draft_ms_ < waited_ms_; }

 private:
  static constexpr double kKept = 0.9;  // share of earlier rounds that counts
  static constexpr int kFirstRounds = 4;

  AcceptanceEstimates estimates_;
  double draft_ms_ = 0;
  double waited_ms_ = 0;
  double tokens_ = 0, rounds_ms_ = 0;  // fading sums
  int rounds_ = 0;
};

}  // namespace outrider
