// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// Proposes what followed the last tokens when they occurred before (TensorRT-LLM's NGram, prompt lookup
// decoding): one continuation, or a tree of all that are kept. Needs no model. Pools of single sequences go
// when the sequence ends; a public pool stays.
Result<std::shared_ptr<Drafter>> make_ngram_drafter(const SpeculativeOptions& options,
                                                    const DrafterContext& context);

}  // namespace outrider
