// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "draft_heads/recurrent_head.h"

namespace outrider {

// EAGLE-3 (2503.01840): states of several depths of the target are fused into one; a decoder layer over it
// and the next token's embedding gives the next state, which is read by a head of its own, mostly over a part
// of the vocabulary. SafeAILab's and speculators' layouts. Errors: a config or tensors that do not fit, a
// vocabulary map or a list of layers that cannot be, named. `captured` are the layers of the target whose
// output is read; empty: those that its config names.
Result<std::unique_ptr<RecurrentHead>> load_eagle3(const HeadFile& head, Model* target,
                                                   const ModelOptions& options,
                                                   std::span<const int> captured = {});

}  // namespace outrider
