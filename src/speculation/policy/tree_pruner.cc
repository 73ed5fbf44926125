// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/tree_pruner.h"

#include <algorithm>

namespace outrider {

void TreePruner::reserve(size_t trees, size_t nodes) {
  trees_.reserve(trees);
  candidates_.reserve(trees * nodes);
  products_.reserve(nodes);
  kept_.reserve(nodes);
}

void TreePruner::clear() {
  trees_.clear();
  candidates_.clear();
}

void TreePruner::add(TokenTree& tree, const AcceptanceEstimates& estimates) {
  products_.assign(1, 1.0);
  for (int node = 1; node < tree.size(); ++node) {
    products_.push_back(products_[static_cast<size_t>(tree.parent(node))] *
                        estimates.estimate(tree.depth(node), tree.probability(node)));
    candidates_.push_back({products_.back(), trees_.size(), node});
  }
  trees_.push_back(&tree);
}

size_t TreePruner::keep(const Terms& terms, const StepCosts& costs) {
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.probability != b.probability) return a.probability > b.probability;
    return a.tree != b.tree ? a.tree < b.tree : a.node < b.node;
  });
  const size_t count = best_count(terms, costs);
  if (count == candidates_.size()) return count;
  for (size_t i = 0; i < trees_.size(); ++i) {
    kept_.assign(static_cast<size_t>(trees_[i]->size()), 0);
    for (size_t j = 0; j < count; ++j) {
      if (candidates_[j].tree == i) kept_[static_cast<size_t>(candidates_[j].node)] = 1;
    }
    trees_[i]->keep(kept_);
  }
  return count;
}

size_t TreePruner::best_count(const Terms& terms, const StepCosts& costs) const {
  const auto max = static_cast<size_t>(std::max(0.0, terms.max_rows - terms.other_rows));
  size_t best_count = 0;
  double sum = 0.0;
  double best = -terms.rate * costs.pass_ms(terms.other_rows);
  for (size_t count = 1; count <= std::min(candidates_.size(), max); ++count) {
    sum += candidates_[count - 1].probability;
    const double value = sum - terms.rate * costs.pass_ms(terms.other_rows + static_cast<double>(count));
    if (value <= best) continue;
    best = value;
    best_count = count;
  }
  return best_count;
}

}  // namespace outrider
