// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// Proposes nothing: plain decoding is the same loop with this drafter.
Result<std::shared_ptr<Drafter>> make_none_drafter(const SpeculativeOptions& options,
                                                   const DrafterContext& context);

}  // namespace outrider
