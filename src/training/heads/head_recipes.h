// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "training/heads/draft_head.h"

namespace outrider::training {

// The recipes of all kinds of learned drafters.
std::vector<HeadRecipe> head_recipes();

}  // namespace outrider::training
