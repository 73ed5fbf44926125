// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// EAGLE, EAGLE-3 and MTP: a small network drafts from the target's states, one pass per level for all
// sequences together. options.decoding_type says which. Errors: no such directory, another kind of drafter,
// a checkpoint that does not fit this target.
Result<std::shared_ptr<Drafter>> make_recurrent_drafter(const SpeculativeOptions& options,
                                                        const DrafterContext& context);

}  // namespace outrider
