// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"
#include "models/model.h"

namespace outrider {

// A smaller model drafts, one pass per level for all sequences together (Leviathan et al., arXiv 2211.17192),
// or one pass for all levels (PARD, arXiv 2504.18583); a model with another vocabulary over a bridge
// (vocabulary_bridge.h). Errors: the draft model cannot be opened, its vocabulary has too little in common
// with the target's, or it was not trained for PARD.
Result<std::shared_ptr<Drafter>> make_draft_target_drafter(const SpeculativeOptions& options,
                                                           const DrafterContext& context);

// As above, with a model opened elsewhere that has the target's vocabulary. Error: out of memory.
Result<std::shared_ptr<Drafter>> make_draft_target_drafter(std::unique_ptr<Model> model,
                                                           const SpeculativeOptions& options,
                                                           const DrafterContext& context);

}  // namespace outrider
