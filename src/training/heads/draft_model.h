// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// An independent small model with the target's tokenizer: it reads no state of the target, and is served by
// DraftTarget, or beside others by SpecInfer.
HeadKind draft_kind();

// SpecInfer's boost-tuning by position. For the token behind every row: of the continuations of `depth`
// tokens that hold it, the share that is right from the first token to the last. right: f32 [windows,
// length], 1 where the token behind the row is foreseen; so is the result.
at::Tensor reproduced_share(const at::Tensor& right, int64_t depth);

}  // namespace outrider::training
