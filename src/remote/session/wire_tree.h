// SPDX-License-Identifier: Apache-2.0
// Trees as client and server talk about them.
#pragma once

#include <span>

#include "outrider/token_tree.h"
#include "remote/protocol/messages.h"

namespace outrider {

WireTree wire_tree_of(const TokenTree& tree);

// The node at the end of `path`, tokens that follow the root; 0 for an empty path; -1 where the tree lacks
// it.
int node_at(const WireTree& tree, std::span<const TokenId> path);

// The nodes below `node`, which becomes the root and holds the token `pending`.
TokenTree tree_below(const WireTree& tree, int node, TokenId pending);

}  // namespace outrider
