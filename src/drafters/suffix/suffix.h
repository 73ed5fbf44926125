// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// Tokens of one sequence that the drafter remembers; the oldest are forgotten first. All finished outputs
// together have kMaxCachedTokens at most.
constexpr int64_t kMaxSequenceTokens = 1 << 15;
constexpr int64_t kMaxCachedTokens = 1 << 21;

// Proposes what followed the longest strings that end the sequence where they occurred before, in the
// sequence itself or in the outputs of finished requests, as likely as they did (SuffixDecoding, arXiv
// 2411.04975). Needs no model.
Result<std::shared_ptr<Drafter>> make_suffix_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context);

}  // namespace outrider
