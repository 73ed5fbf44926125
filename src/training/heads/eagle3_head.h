// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// EAGLE-3 (2503.01840): fused hidden states of several layers, training-time test, and an output head over
// the most frequent tokens.
HeadRecipe eagle3_recipe();

// P-EAGLE: EAGLE-3 with learned features and a token that stand in at places to be drafted, so that one pass
// predicts all of them.
HeadRecipe peagle_recipe();

}  // namespace outrider::training
