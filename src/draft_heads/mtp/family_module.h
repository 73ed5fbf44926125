// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "draft_heads/mtp/mtp_layout.h"
#include "draft_heads/recurrent_head.h"

namespace outrider {

// MTP modules with decoder layers of the target's family, with all that family's layers may have: experts,
// latent attention, gates. Their tensors have the names that Hugging Face files give to them (DeepSeek V3,
// GLM-4.5, GLM-4.7-Flash, Qwen3-Next, Qwen3.5), fused, by expert or quantised, and may lie among the
// target's. Each layer has the shape of the target's last layer with attention. Where there are several,
// module k drafts level k. Errors: several in a GGUF file, tensors that do not fit, named.
Result<std::unique_ptr<RecurrentHead>> load_family_module(const HeadFile& head, const MtpLayout& layout,
                                                          Model* target, const ModelOptions& options);

}  // namespace outrider
