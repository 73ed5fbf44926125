// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "training/heads/draft_head.h"

namespace outrider::training {

// Mixture of Attentions (2410.03804): reads keys and values of all layers of the target; may draft through
// the target's last layers.
HeadKind moa_kind();

// The published sampling of what training takes as known: of every window the tokens that do not count, and
// one in `period` of the others, 6 to 14. int64 [windows], a function of the batch's seed.
at::Tensor sampled_periods(uint64_t seed, int64_t windows);

}  // namespace outrider::training
