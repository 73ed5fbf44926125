// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "draft_heads/recurrent_head.h"

namespace outrider {

// EAGLE-3 (2503.01840): states of several depths of the target are fused into one. A decoder layer over it
// and the next token's embedding gives the next state. Its own head reads that, mostly over a part of the
// vocabulary. SafeAILab's and speculators' layouts. Errors: a config or tensors that do not fit, a vocabulary
// map or a list of layers that cannot be, named. `captured`: layers of the target that it reads outputs of;
// empty: the layers that its config names.
Result<std::unique_ptr<RecurrentHead>> load_eagle3(const HeadFile& head, Model* target,
                                                   const ModelOptions& options,
                                                   std::span<const int> captured = {});

}  // namespace outrider
