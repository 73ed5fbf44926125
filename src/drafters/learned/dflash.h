// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// A DFlash block drafter (arXiv 2602.06036): one pass proposes the distributions of all places of a block,
// independent of the tokens in them. Errors: no directory is named; errors of its files; it was trained for
// another target.
Result<std::shared_ptr<Drafter>> make_dflash_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context);

}  // namespace outrider
