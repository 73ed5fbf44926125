// SPDX-License-Identifier: Apache-2.0
// Readers of the keys of config.json that families with layers other than attention have, as
// family_traits.h.
#pragma once

#include "formats/json_file.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

Status read_lfm2_traits(const JsonObject& root, ModelConfig* config);
Status read_qwen3_next_traits(const JsonObject& root, ModelConfig* config);
Status read_qwen35_traits(const JsonObject& root, ModelConfig* config);
Status read_qwen35_moe_traits(const JsonObject& root, ModelConfig* config);

// Traits that GGUF files leave to their reader.
void derive_gguf_qwen3_next_traits(ModelConfig* config);

}  // namespace outrider
