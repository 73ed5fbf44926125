// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "training/heads/draft_head.h"

namespace outrider::training {

// DFlash (2602.06036): one pass drafts a block of tokens.
HeadKind dflash_kind();

// Tokens that blocks begin with, int64 [windows, count], a function of the batch's seed: in each window one
// at random in each of `count` equal stretches, all with a token before them and `behind` tokens behind them
// within `length`.
at::Tensor sampled_anchors(uint64_t seed, at::IntArrayRef windows_and_count, int64_t length, int64_t behind);

}  // namespace outrider::training
