// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <span>

#include "outrider/result.h"
#include "training/heads/draft_head.h"
#include "training/heads/frozen_target.h"
#include "training/heads/head_data.h"

namespace outrider::training {

// The windows padded to the longest, with the target's state behind them, on `device`. Chance and progress
// are left to the caller.
Result<HeadBatch> make_head_batch(std::span<const Window> windows, FrozenTarget& target, at::Device device);

}  // namespace outrider::training
