// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "draft_heads/recurrent_head.h"

namespace outrider {

// Modules that were trained with the target to predict tokens further ahead (DeepSeek-V3, 2412.19437): the
// next token's embedding and the target's normalised output, each normalised, through one linear map and a
// decoder layer. One module drafts every level from its own states; of several, module k drafts level k.
// DeepSeek's names, in a separate directory or among the target's tensors, and Qwen3-Next's names. Norms of
// Qwen3-Next are stored as w for a scale of 1 + w, and the module goes on from its normalised state. Modules
// of targets with experts, latent or gated attention are in family_module.h. Errors: a config or tensors that
// do not fit, named.
Result<std::unique_ptr<RecurrentHead>> load_mtp(const HeadFile& head, Model* target,
                                                const ModelOptions& options);

}  // namespace outrider
