// SPDX-License-Identifier: Apache-2.0
// Readers of config.json for families with mixtures of experts, see family_traits.h.
#pragma once

#include "formats/json_object.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

Status read_mixtral_traits(const JsonObject& root, ModelConfig* config);
Status read_qwen_moe_traits(const JsonObject& root, ModelConfig* config);  // Qwen 2 and 3
Status read_olmoe_traits(const JsonObject& root, ModelConfig* config);
Status read_gpt_oss_traits(const JsonObject& root, ModelConfig* config);
Status read_granite_moe_traits(const JsonObject& root, ModelConfig* config);
Status read_granite_hybrid_traits(const JsonObject& root, ModelConfig* config);
Status read_glm4_moe_traits(const JsonObject& root, ModelConfig* config);
Status read_llama4_traits(const JsonObject& root, ModelConfig* config);

// Traits that GGUF files leave to their reader.
void derive_gguf_gpt_oss_traits(ModelConfig* config);
void derive_gguf_llama4_traits(ModelConfig* config);

}  // namespace outrider
