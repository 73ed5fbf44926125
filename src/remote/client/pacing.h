// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "base/fading_line.h"
#include "outrider/token_tree.h"
#include "speculation/tree/acceptance_estimates.h"

namespace outrider {

// The server's time for a tree, by its nodes. Old trees fade.
class ServerTime {
 public:
  void learn(double nodes, double ms);
  double row_ms() const { return line_.slope(); }  // of one more node

 private:
  FadingLine line_{/*max_weight=*/24, /*smoothing=*/2};  // trees of nearly one size say nothing
};

// The pace of a session: the time that rounds over the network take, and the tokens that they bring. It says
// how much more drafting pays. Old rounds fade.
class Pacing {
 public:
  void on_draft(double ms) { draft_ms_ = ms; }
  // `tree` became these tokens; its verdict took `waited_ms`, of which the server worked `server_ms`, and
  // `round_ms` passed since the one before.
  struct Round {
    double server_ms = 0, waited_ms = 0, round_ms = 0;
  };
  void on_verdict(const TokenTree& tree, std::span<const TokenId> tokens, const Round& round);

  // Tokens per millisecond, the price of time for DraftRequest::rate; 0: not yet known.
  double rate() const { return rounds_ < kFirstRounds ? 0.0 : tokens_ / std::max(rounds_ms_, 1e-3); }
  double row_ms() const { return server_.row_ms(); }
  const AcceptanceEstimates& estimates() const { return estimates_; }
  // Nodes of the next tree: the first rounds have trees of different sizes, which show what a node costs.
  int max_nodes() const {
    return rounds_ < kFirstRounds ? 2 << 2 * rounds_ : std::numeric_limits<int>::max();
  }
  // Cuts the nodes that promise less than the server's time for them is worth. The likeliest one stays, from
  // which the estimates go on learning.
  void prune(TokenTree& tree) const;
  // A tree can be drafted while a verdict travels.
  bool has_time_ahead() const { return draft_ms_ < waited_ms_; }

 private:
  static constexpr double kKept = 0.9;  // share of earlier rounds that counts
  static constexpr int kFirstRounds = 4;

  AcceptanceEstimates estimates_;
  ServerTime server_;
  double draft_ms_ = 0;
  double waited_ms_ = 0;
  double tokens_ = 0, rounds_ms_ = 0;  // fading sums
  int rounds_ = 0;
};

}  // namespace outrider
