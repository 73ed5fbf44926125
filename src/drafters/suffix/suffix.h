// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// Tokens of one sequence that the drafter remembers; the oldest are forgotten first. All finished outputs
// together have kMaxCachedTokens at most.
constexpr int64_t kMaxSequenceTokens = 1 << 15;
constexpr int64_t kMaxCachedTokens = 1 << 21;

// Proposes what followed the longest strings that end the sequence where they occurred before, as likely as
// it did (SuffixDecoding, arXiv 2411.04975). It looks in the sequence itself, in the outputs of finished
// requests and in the corpus of the context (REST, arXiv 2311.08252). Needs no model.
Result<std::shared_ptr<Drafter>> make_suffix_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context);

}  // namespace outrider
