// SPDX-License-Identifier: Apache-2.0
#include "speculation/node_choice.h"

namespace outrider {

NodeChoice choose_child(const TokenTree& tree, int node, TokenId token) {
  int child = next_child(tree, node, node);
  while (child != kNoChild && tree.token(child) != token) child = next_child(tree, node, child);
  return {token, child};
}

NodeChoice choose_coupled(const ReachedNode& reached, Randomness& randomness) {
  return choose_child(reached.tree, reached.node,
                      randomness.coupled_pick(reached.target_law, reached.position));
}

}  // namespace outrider
