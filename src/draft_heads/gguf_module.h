// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "draft_heads/gguf_head.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// A network of one layer like the target's last one with attention: an MTP module of its family.
ModelConfig module_layer_config(const ModelConfig& target);

// The MTP module in GGUF files ("blk.N.nextn." of llama.cpp's converters) with the names that published
// checkpoints have: in a separate file (--spec-type draft-mtp) or, if `may_be_model`, among the target's
// tensors. Norms have 1 added where the family adds it. nullopt: there is none. Errors: a family with modules
// that are not read; a tensor that is missing or misshapen.
Result<std::optional<GgufHead>> find_gguf_module(const std::shared_ptr<const StoredFiles>& files,
                                                 bool may_be_model);

}  // namespace outrider
