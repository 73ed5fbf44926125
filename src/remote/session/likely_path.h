// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "outrider/token_tree.h"

namespace outrider {

// The tokens of the path that a tree's drafter believes in: the first child of every node, which is the
// likeliest.
std::vector<TokenId> likeliest_path(const TokenTree& tree);

// The tree of root `pending` with only one path, `path`, which leads to the root of `next`.
TokenTree tree_after(TokenId pending, std::span<const TokenId> path, const TokenTree& next);

}  // namespace outrider
