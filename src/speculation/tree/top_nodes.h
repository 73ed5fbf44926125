// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "outrider/token_tree.h"

namespace outrider {

// Cuts a tree down to the nodes most likely to be accepted: the nodes with the largest product of
// probabilities on their path (EAGLE-2, 2406.16858); ties go to the node drafted first. A child never
// precedes its parent in this order, so the kept nodes form a tree. Keeps its scratch memory between calls.
class TopNodes {
 public:
  // The nodes below the root in descending order of path_probability().
  const std::vector<int>& order(const TokenTree& tree);
  double path_probability(int node) const { return products_[static_cast<size_t>(node)]; }

  // Keeps the first `count` nodes of the order. Precondition: order(tree) was the last call.
  void keep_first(TokenTree& tree, int count);

  // Keeps the `count` likeliest nodes of the tree.
  void keep(TokenTree& tree, int count) {
    if (tree.drafted() <= count) return;
    order(tree);
    keep_first(tree, count);
  }

 private:
  std::vector<double> products_;
  std::vector<int> order_;
  std::vector<uint8_t> kept_;
};

}  // namespace outrider
