// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// One multi-token prediction module, used again for every token (DeepSeek-V3's layout).
HeadRecipe mtp_recipe();

}  // namespace outrider::training
