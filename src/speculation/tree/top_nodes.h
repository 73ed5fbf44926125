// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "outrider/token_tree.h"

namespace outrider {

// Cuts trees down to the nodes most likely to be accepted: those with the largest product of probabilities on
// their path, equal ones in the order they were drafted. No child is likelier than its parent and none comes
// before it, so that parents stay with their children. Keeps its scratch memory between calls.
class TopNodes {
 public:
  // Nodes below the root by falling product; the products are in path_probability().
  const std::vector<int>& order(const TokenTree& tree);
  double path_probability(int node) const { return products_[static_cast<size_t>(node)]; }

  // Precondition: order(tree) was called last.
  void keep_first(TokenTree& tree, int count);

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
