// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "formats/model_config.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// Mixture of Attentions (2410.03804): reads keys and values of all layers of the target; may draft through
// the target's last layers.
HeadRecipe moa_recipe();

// Attention heads of layer self-attention: as many as the target's, as published, where they divide the keys
// and values of a layer; else heads of the target's size.
int64_t moa_layer_heads(const ModelConfig& target);
// Draws the published periods, int64 [windows], 6 to 14, from the batch's seed. Training takes the target's
// state as known for the tokens that do not count and for one in `period` of the others.
at::Tensor sampled_periods(uint64_t seed, int64_t windows);

}  // namespace outrider::training
