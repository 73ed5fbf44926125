// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "outrider/token_tree.h"

namespace outrider {

// A tree of two branches; probabilities[i] belongs to node i + 1, tokens are in parentheses.
//  0 - 1 (10) - 3 (30) - 5 (50)
//    \ 2 (20) - 4 (40)
inline TokenTree two_branches_with(const std::array<double, 5>& probabilities) {
  TokenTree tree(9);
  const std::array<int, 5> parents = {0, 0, 1, 2, 3};
  for (int i = 0; i < 5; ++i) {
    const auto at = static_cast<size_t>(i);
    tree.add(parents[at], 10 * (i + 1), probabilities[at]);
  }
  return tree;
}

}  // namespace outrider
