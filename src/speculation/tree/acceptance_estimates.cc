// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/acceptance_estimates.h"

#include <algorithm>
#include <cstddef>

#include "config/methods.h"

namespace outrider {
namespace {

constexpr double kDrafterWeight = 2.0;        // proposals that the drafter's own probability counts for
constexpr double kPriorWeight = 6.0;          // proposals that the prior counts for
constexpr double kMaxProposed = 128.0;        // proposals of a cell beyond which old ones fade
constexpr double kDefaultAcceptance = 0.4;    // prior for drafters that give no probabilities
constexpr double kDefaultContinuation = 0.7;  // prior of continuation()
constexpr double kMin = 0.01;                 // estimates lie in [kMin, 1 - kMin]

bool is_informative(double probability) { return probability < 1.0; }  // false for NaN

}  // namespace

size_t AcceptanceEstimates::index(int depth, double probability) {
  const int row = std::clamp(depth, 1, kDepths) - 1;
  const int bin =
      is_informative(probability) ? static_cast<int>(std::max(0.0, probability) * (kBins - 1)) : kBins - 1;
  return static_cast<size_t>(row * kBins + bin);
}

double AcceptanceEstimates::mean(const Cell& cell, double prior) const {
  const double weight = prior_ != nullptr ? kPriorWeight : kDrafterWeight;
  const double mean = (cell.accepted + weight * prior) / (cell.proposed + weight);
  return std::clamp(mean, kMin, 1.0 - kMin);
}

void AcceptanceEstimates::count(Cell& cell, bool is_accepted) {
  if (cell.proposed >= kMaxProposed) {
    constexpr double kFade = 1.0 - 1.0 / kMaxProposed;
    cell.proposed *= kFade;
    cell.accepted *= kFade;
  }
  cell.proposed += 1.0;
  cell.accepted += is_accepted ? 1.0 : 0.0;
}

double AcceptanceEstimates::estimate(int depth, double probability) const {
  const double own = is_informative(probability) ? probability : kDefaultAcceptance;
  return mean(cells_[index(depth, probability)],
              prior_ != nullptr ? prior_->estimate(depth, probability) : own);
}

double AcceptanceEstimates::continuation(int depth) const {
  const auto level = static_cast<size_t>(std::clamp(depth, 0, kDepths - 1));
  return mean(continuations_[level], prior_ != nullptr ? prior_->continuation(depth) : kDefaultContinuation);
}

void AcceptanceEstimates::learn(int depth, double probability, bool is_accepted) {
  count(cells_[index(depth, probability)], is_accepted);
}

int AcceptanceEstimates::learn(const TokenTree& tree, std::span<const TokenId> tokens) {
  // By depth: the node of the committed path, -1 beyond the tree.
  std::array<int, kMaxDraftLen + 1> path;
  path.fill(-1);
  path[0] = 0;
  std::array<bool, kMaxDraftLen + 1> has_children{};  // by depth of the path's node
  int followed = 0;
  for (int node = 1; node < tree.size(); ++node) {
    const auto depth = static_cast<size_t>(tree.depth(node));
    if (depth > tokens.size() || depth > kMaxDraftLen || path[depth - 1] != tree.parent(node)) continue;
    const bool is_accepted = tree.token(node) == tokens[depth - 1];
    has_children[depth - 1] = true;
    learn(tree.depth(node), tree.probability(node), is_accepted);
    if (!is_accepted) continue;
    path[depth] = node;
    followed = std::max(followed, tree.depth(node));
  }
  for (int depth = 0; depth <= followed && depth < kMaxDraftLen; ++depth) {
    const auto level = static_cast<size_t>(std::min(depth, kDepths - 1));
    if (has_children[static_cast<size_t>(depth)]) count(continuations_[level], followed > depth);
  }
  return followed;
}

}  // namespace outrider
