// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/acceptance_estimates.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

constexpr double kOwnWordWeight = 2.0;  // tries that the drafter's own word counts for
constexpr double kPriorWeight = 6.0;    // tries that the prior counts for
constexpr double kMemory = 128.0;       // tries of a cell that are remembered
constexpr double kNoOpinion = 0.4;      // of a drafter that says 1 of everything
constexpr double kContinued = 0.7;
constexpr double kMin = 0.01;

bool has_opinion(double probability) { return probability < 1.0; }  // NaN is none

}  // namespace

size_t AcceptanceEstimates::index(int depth, double probability) {
  const int row = std::clamp(depth, 1, kDepths) - 1;
  const int level =
      has_opinion(probability) ? static_cast<int>(std::max(0.0, probability) * (kLevels - 1)) : kLevels - 1;
  return static_cast<size_t>(row * kLevels + level);
}

double AcceptanceEstimates::mean(const Cell& cell, double prior) const {
  const double weight = prior_ != nullptr ? kPriorWeight : kOwnWordWeight;
  const double mean = (cell.accepted + weight * prior) / (cell.tried + weight);
  return std::clamp(mean, kMin, 1.0 - kMin);
}

void AcceptanceEstimates::count(Cell& cell, bool is_accepted) {
  if (cell.tried >= kMemory) {
    constexpr double kFade = 1.0 - 1.0 / kMemory;
    cell.tried *= kFade;
    cell.accepted *= kFade;
  }
  cell.tried += 1.0;
  cell.accepted += is_accepted ? 1.0 : 0.0;
}

double AcceptanceEstimates::estimate(int depth, double probability) const {
  const double own = has_opinion(probability) ? probability : kNoOpinion;
  return mean(cells_[index(depth, probability)],
              prior_ != nullptr ? prior_->estimate(depth, probability) : own);
}

double AcceptanceEstimates::continuation(int depth) const {
  const auto level = static_cast<size_t>(std::clamp(depth, 0, kDepths - 1));
  return mean(continued_[level], prior_ != nullptr ? prior_->continuation(depth) : kContinued);
}

void AcceptanceEstimates::learn(int depth, double probability, bool is_accepted) {
  count(cells_[index(depth, probability)], is_accepted);
}

int AcceptanceEstimates::learn(const TokenTree& tree, std::span<const TokenId> tokens) {
  // The path's node by depth; -1: it left the tree before.
  constexpr int kMaxLevels = 64;
  std::array<int, kMaxLevels + 1> path;
  path.fill(-1);
  path[0] = 0;
  std::array<bool, kMaxLevels + 1> is_tried{};  // whether the path's node of that depth has children
  int followed = 0;
  for (int node = 1; node < tree.size(); ++node) {
    const auto depth = static_cast<size_t>(tree.depth(node));
    if (depth > tokens.size() || depth > kMaxLevels || path[depth - 1] != tree.parent(node)) continue;
    const bool is_accepted = tree.token(node) == tokens[depth - 1];
    is_tried[depth - 1] = true;
    learn(tree.depth(node), tree.probability(node), is_accepted);
    if (!is_accepted) continue;
    path[depth] = node;
    followed = std::max(followed, tree.depth(node));
  }
  for (int depth = 0; depth <= followed && depth < kMaxLevels; ++depth) {
    const auto level = static_cast<size_t>(std::min(depth, kDepths - 1));
    if (is_tried[static_cast<size_t>(depth)]) count(continued_[level], followed > depth);
  }
  return followed;
}

}  // namespace outrider
