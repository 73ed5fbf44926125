// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// Medusa's heads (arXiv 2401.10774) read the target's state after the final norm, of the last token before
// the pending one, and give one distribution per level of the tree, whatever the path. Errors: the heads
// cannot be opened, belong to another target, or are fewer than the levels of medusa_choices.
Result<std::shared_ptr<Drafter>> make_medusa_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context);

}  // namespace outrider
