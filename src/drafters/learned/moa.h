// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// A Mixture of Attentions drafter (Zimmer et al., arXiv 2410.03804): reads all layers of the target's cache,
// and may draft through the target's last layers. Errors: no directory is named; errors of its files; it was
// trained for another target.
Result<std::shared_ptr<Drafter>> make_moa_drafter(const SpeculativeOptions& options,
                                                  const DrafterContext& context);

// The last layers of the target that drafts run through.
Result<int64_t> moa_tail_layers(const HeadFile& head, const ModelConfig& target);

}  // namespace outrider
