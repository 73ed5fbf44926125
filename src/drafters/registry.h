// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"
#include "outrider/drafter.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

// Limits of the trees that options ask for.
struct DraftLimits {
  int max_draft_len = 0;  // levels below the root
  int max_nodes = 0;      // nodes below the root
};
DraftLimits limits_of(const SpeculativeOptions& options);

// How many of the target's last layers the drafter of this head runs where the target is on another machine.
// Errors: a configuration that does not fit.
Result<int64_t> tail_layers(const HeadFile& head, const ModelConfig& target);

// The drafter of options.decoding_type. Errors: options out of range, or whatever keeps this drafter from
// serving this target. Precondition: the options are resolved (open/resolved.h), and the context has their
// files.
Result<std::shared_ptr<Drafter>> make_drafter(const SpeculativeOptions& options,
                                              const DrafterContext& context);

}  // namespace outrider
