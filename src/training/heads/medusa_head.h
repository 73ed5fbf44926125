// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// Medusa-1 (2401.10774): each head predicts one later token from the last hidden state; the target stays
// frozen.
HeadRecipe medusa_recipe();

}  // namespace outrider::training
