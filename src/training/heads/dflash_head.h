// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// DFlash (2602.06036): one forward pass drafts a block of tokens.
HeadRecipe dflash_recipe();

}  // namespace outrider::training
