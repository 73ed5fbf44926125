// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "outrider/token_tree.h"

namespace outrider {

// Calibrates a drafter's confidence: estimates the probability that a node is accepted given that its parent
// is accepted, by the node's depth and the probability that the drafter gave it. Each cell of that table
// counts proposed and accepted nodes; old counts fade, and a prior stands in for the nodes not yet seen.
class AcceptanceEstimates {
 public:
  // `prior` must outlive this. Null: the drafter's own probabilities are the prior.
  explicit AcceptanceEstimates(const AcceptanceEstimates* prior = nullptr) : prior_(prior) {}
  // Copies the counts and takes another prior.
  AcceptanceEstimates(const AcceptanceEstimates& counts, const AcceptanceEstimates* prior)
      : AcceptanceEstimates(counts) {
    prior_ = prior;
  }
  const AcceptanceEstimates* prior() const { return prior_; }

  // The estimate, in (0, 1), for a node at `depth` (1: a child of the root) to which the drafter gave
  // `probability`. A probability of 1, above 1 or NaN counts as no information.
  double estimate(int depth, double probability) const;

  // The probability that one of the children of an accepted node at `depth` (0: the root) is accepted, given
  // that it has children.
  double continuation(int depth) const;

  // Counts one node below an accepted parent.
  void learn(int depth, double probability, bool is_accepted);

  // Counts all nodes of a tree with a parent on the path of the committed `tokens`, which follow the root.
  // Returns the number of levels of the tree that this path followed.
  int learn(const TokenTree& tree, std::span<const TokenId> tokens);

 private:
  struct Cell {
    double proposed = 0.0;  // nodes counted, fading
    double accepted = 0.0;  // the accepted nodes among them
  };
  static constexpr int kDepths = 8;  // the last one holds all deeper nodes
  static constexpr int kBins = 10;   // bins of the probability; the last one is for nodes without information
  static size_t index(int depth, double probability);

  double mean(const Cell& cell, double prior) const;
  static void count(Cell& cell, bool is_accepted);

  const AcceptanceEstimates* prior_;
  std::array<Cell, kDepths> continuations_{};                       // [depth of the parent]
  std::array<Cell, static_cast<size_t>(kDepths) * kBins> cells_{};  // [depth - 1][bin]
};

}  // namespace outrider
