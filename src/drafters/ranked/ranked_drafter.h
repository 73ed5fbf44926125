// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// A draft model that drafts on separate ranks where the context has some (DrafterContext::team), each for a
// part of the sequences; else here. Trees are the same. Errors: as of make_draft_target_drafter(), at any
// rank.
Result<std::shared_ptr<Drafter>> make_draft_model_drafter(const SpeculativeOptions& options,
                                                          const DrafterContext& context);

}  // namespace outrider
