// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// Lookahead decoding (arXiv 2402.02057): every pass also computes a window of guessed tokens to come, out of
// which n-grams grow that later passes verify. Needs no model, but rows of the target. max_draft_len has no
// effect: the options of the window say how deep and large the tree is.
Result<std::shared_ptr<Drafter>> make_lookahead_drafter(const SpeculativeOptions& options,
                                                        const DrafterContext& context);

// Levels and nodes of the largest tree, the root not counted; at least 1.
int lookahead_draft_len(const SpeculativeOptions& options);
int lookahead_nodes(const SpeculativeOptions& options);

}  // namespace outrider
