// SPDX-License-Identifier: Apache-2.0
// Checks of drafted trees before the target verifies them.
#pragma once

#include <cstdint>

#include "outrider/drafter.h"
#include "outrider/token_tree.h"

namespace outrider {

// Whether the tree keeps the request's limits, the vocabulary, and the pending token as its root.
bool is_within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size);

// `tree` without the nodes that break the request's limits or the vocabulary, and without their descendants.
// A tree with another root becomes the lone pending token.
TokenTree within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size);

// Cuts the nodes that the request's constraint forbids, and their descendants. A tree with nodes drawn for
// the rejection rule stays as it is: the rule rejects such nodes with certainty, while a cut would make their
// siblings count as chosen.
void cut_forbidden(TokenTree& tree, const DraftRequest& request);

}  // namespace outrider
