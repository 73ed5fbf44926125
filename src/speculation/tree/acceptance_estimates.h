// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "outrider/token_tree.h"

namespace outrider {

// How often nodes of a drafter are accepted once their parent is, by depth and by the probability that the
// drafter gave them: turns its confidence into what it is worth. Old steps fade.
class AcceptanceEstimates {
 public:
  // `prior` stands in for steps not yet seen; it must outlive this. Null: the drafter's own word.
  explicit AcceptanceEstimates(const AcceptanceEstimates* prior = nullptr) : prior_(prior) {}

  // Of a node at that depth (1: a child of the root) whose drafter said `probability`. In (0, 1).
  double estimate(int depth, double probability) const;

  // Of a node at that depth being followed by an accepted one, if it is accepted and has children.
  double continuation(int depth) const;

  // A node whose parent was accepted.
  void learn(int depth, double probability, bool is_accepted);

  // All nodes of a tree whose parent is on the path that `tokens` took from its root. Returns how many levels
  // of the tree that path followed.
  int learn(const TokenTree& tree, std::span<const TokenId> tokens);

 private:
  struct Cell {
    double tried = 0.0;
    double accepted = 0.0;
  };
  static constexpr int kDepths = 8;   // the last one holds all deeper ones
  static constexpr int kLevels = 10;  // of the probability; the last one: the drafter has no opinion
  static size_t index(int depth, double probability);

  double mean(const Cell& cell, double prior) const;
  static void count(Cell& cell, bool is_accepted);

  const AcceptanceEstimates* prior_;
  std::array<Cell, kDepths> continued_{};
  std::array<Cell, static_cast<size_t>(kDepths) * kLevels> cells_{};
};

}  // namespace outrider
