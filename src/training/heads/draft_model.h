// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// An independent small model with the target's tokenizer. It reads no state of the target; DraftTarget serves
// it, or SpecInfer together with others.
HeadRecipe draft_recipe();

// SpecInfer's boost-tuning by position. For the token after every row, returns the share of the continuations
// of `depth` tokens containing it that are right from the first token to the last. `right`: f32 [windows,
// length], 1 where the token after the row is predicted. The result has this shape and type.
at::Tensor reproduced_share(const at::Tensor& right, int64_t depth);

}  // namespace outrider::training
