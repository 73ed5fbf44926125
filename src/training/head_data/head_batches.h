// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <span>

#include "outrider/result.h"
#include "training/head_data/head_data.h"
#include "training/head_data/state_source.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// The windows padded to the longest and a multiple of kLengthUnit, with the target's state behind them, on
// `device`. Chance and progress are left to the caller.
Result<HeadBatch> make_head_batch(std::span<const Window> windows, StateSource& source, at::Device device);

}  // namespace outrider::training
