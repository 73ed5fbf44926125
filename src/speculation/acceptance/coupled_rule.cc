// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/node_choice.h"

namespace outrider {

NodeChoice choose_child(const TokenTree& tree, int node, TokenId own) {
  int child = next_child(tree, node, node);
  while (child != kNoChild && tree.token(child) != own) child = next_child(tree, node, child);
  return {own, child};
}

}  // namespace outrider
