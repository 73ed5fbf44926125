// SPDX-License-Identifier: Apache-2.0
#include "remote/session/likely_path.h"

#include <cstddef>

namespace outrider {

std::vector<TokenId> likeliest_path(const TokenTree& tree) {
  std::vector<TokenId> path;
  int end = 0;
  for (int node = 1; node < tree.size(); ++node) {
    if (tree.parent(node) != end) continue;
    path.push_back(tree.token(node));
    end = node;
  }
  return path;
}

TokenTree tree_after(TokenId pending, std::span<const TokenId> path, const TokenTree& next) {
  TokenTree tree(pending);
  int end = 0;
  for (const TokenId token : path) end = tree.add(end, token);
  std::vector<int> places = {end};  // by node of `next`
  for (int node = 1; node < next.size(); ++node)
    places.push_back(tree.add(places[static_cast<size_t>(next.parent(node))], next.token(node)));
  return tree;
}

}  // namespace outrider
