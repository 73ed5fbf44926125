// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// An independent small model with the target's tokenizer: it reads no state of the target, and is served by
// DraftTarget, or beside others by SpecInfer.
HeadKind draft_kind();

// SpecInfer's boost-tuning by position: the weight of every row's token, 1 less the share of the
// continuations of `depth` tokens it belongs to that are `solved` from their first token to their last.
// right: f32 [windows, length], 1 where the token behind the row is the one to learn; so is the result.
at::Tensor reproduced_share(const at::Tensor& right, int64_t depth);

}  // namespace outrider::training
