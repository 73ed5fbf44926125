// SPDX-License-Identifier: Apache-2.0
// What is left of drafted trees before the target sees them.
#pragma once

#include <cstdint>

#include "outrider/drafter.h"
#include "outrider/token_tree.h"

namespace outrider {

// Whether it keeps the request's limits, the vocabulary, and the pending token as its root.
bool is_within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size);

// `tree` without the nodes that break the request's limits or the vocabulary, and without their descendants.
// A tree with another root becomes the lone pending token.
TokenTree within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size);

// Cuts the nodes that the request's constraint does not let come where they stand, and their descendants. A
// tree with nodes drawn for the rejection rule stays as it is: there such nodes are rejected with certainty,
// while without them the draws of their siblings would count for nothing.
void cut_forbidden(TokenTree& tree, const DraftRequest& request);

}  // namespace outrider
