// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// PARD (2504.18583): a separate small model; its masks after the text predict all tokens of a draft in one
// pass. PARD serves it.
HeadRecipe pard_recipe();

}  // namespace outrider::training
