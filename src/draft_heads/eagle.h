// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "draft_heads/recurrent_head.h"

namespace outrider {

// EAGLE-1 and 2 (2401.15077, 2406.16858; the same weights). The next token's embedding and the target's
// normalised output give the next output, through one linear map and decoder layers; the first has no input
// norm. The target's head reads it. Errors: a config or tensors that do not fit, named.
Result<std::unique_ptr<RecurrentHead>> load_eagle(const HeadFile& head, Model* target,
                                                  const ModelOptions& options);

}  // namespace outrider
