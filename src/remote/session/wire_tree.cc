// SPDX-License-Identifier: Apache-2.0
#include "remote/session/wire_tree.h"

#include <cstddef>
#include <vector>

namespace outrider {

WireTree wire_tree_of(const TokenTree& tree) {
  return {.tokens = {tree.tokens().begin() + 1, tree.tokens().end()},
          .parents = {tree.parents().begin() + 1, tree.parents().end()}};
}

int node_at(const WireTree& tree, std::span<const TokenId> path) {
  int node = 0;
  size_t depth = 0;
  // Children come after their parents, so one pass finds the whole path.
  for (size_t i = 0; i < tree.tokens.size() && depth < path.size(); ++i) {
    if (tree.parents[i] != node || tree.tokens[i] != path[depth]) continue;
    node = static_cast<int>(i) + 1;
    ++depth;
  }
  return depth == path.size() ? node : -1;
}

TokenTree tree_below(const WireTree& tree, int node, TokenId pending) {
  TokenTree below(pending);
  std::vector<int> place(tree.tokens.size() + 1, -1);  // by node: its index in `below`
  place[static_cast<size_t>(node)] = 0;
  for (size_t i = 0; i < tree.tokens.size(); ++i) {
    const int parent = place[static_cast<size_t>(tree.parents[i])];
    if (parent >= 0) place[i + 1] = below.add(parent, tree.tokens[i]);
  }
  return below;
}

}  // namespace outrider
