// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "training/heads/draft_head.h"

namespace outrider::training {

// DFlash (2602.06036): one forward pass drafts a block of tokens.
HeadRecipe dflash_recipe();

// Draws the positions at which blocks begin, int64 [windows, count], from the batch's seed: one in each of
// `count` equal sections of every window, so that within `length` a token comes before and `following` tokens
// come after each position.
at::Tensor sampled_anchors(uint64_t seed, at::IntArrayRef windows_and_count, int64_t length,
                           int64_t following);

}  // namespace outrider::training
