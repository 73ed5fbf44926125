// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "draft_heads/gguf_head.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// A network of one layer like the target's last one with attention: an MTP module of its family.
ModelConfig module_layer_config(const ModelConfig& target);

struct GgufModule {
  GgufHead head;
  bool is_alone = false;  // the file has no layers of the target
};

// The MTP module in a GGUF file ("blk.N.nextn." of llama.cpp's converters), among the target's tensors or in
// a separate file (--spec-type draft-mtp), with the names that published checkpoints have. Norms have 1 added
// where the family adds it. nullopt: there is none. Errors: errors of the file; a family with modules that
// are not read; a tensor that is missing or misshapen.
Result<std::optional<GgufModule>> find_gguf_module(const std::filesystem::path& path);

}  // namespace outrider
