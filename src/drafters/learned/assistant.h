// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// The assistant of a Gemma 4 model drafts over the target's own keys and values. Errors: as of
// AssistantNetwork::load(); a target that is divided or on another machine.
Result<std::shared_ptr<Drafter>> make_assistant_drafter(const SpeculativeOptions& options,
                                                        const DrafterContext& context);

}  // namespace outrider
