// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// EAGLE-1 (2401.15077): a layer that predicts the target's hidden states. EAGLE-2 uses the same heads.
HeadRecipe eagle_recipe();

}  // namespace outrider::training
