// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// DSpark (2607.05147), in DeepSeek's layout: a block drafter; its places know the token before them and
// estimate whether they will be accepted. The pending token's own place drafts the first token.
HeadRecipe dspark_recipe();

}  // namespace outrider::training
