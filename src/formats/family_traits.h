// SPDX-License-Identifier: Apache-2.0
// Readers of the keys of config.json that single families have; rows of families.cc name them. Each fills in
// what the common reader (hf_config.cc) cannot know. Errors: a mistyped key, an option that is not supported
// (named).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/json_object.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

Status read_falcon_traits(const JsonObject& root, ModelConfig* config);
Status read_gemma2_traits(const JsonObject& root, ModelConfig* config);
Status read_gemma3_traits(const JsonObject& root, ModelConfig* config);
Status read_gemma4_traits(const JsonObject& root, ModelConfig* config);
Status read_glm_traits(const JsonObject& root, ModelConfig* config);
Status read_gpt2_traits(const JsonObject& root, ModelConfig* config);
Status read_granite_traits(const JsonObject& root, ModelConfig* config);
Status read_mpt_traits(const JsonObject& root, ModelConfig* config);
Status read_query_temperature(const JsonObject& root, ModelConfig* config);  // Ministral 3
Status read_opt_traits(const JsonObject& root, ModelConfig* config);
Status read_stablelm_traits(const JsonObject& root, ModelConfig* config);
Status read_starcoder_traits(const JsonObject& root, ModelConfig* config);
Status read_starcoder2_traits(const JsonObject& root, ModelConfig* config);

// The value of a key, or `absent`.
Result<bool> flag(const JsonObject& root, std::string_view key, bool absent);
// Error: the key is true.
Status refuse(const JsonObject& root, std::string_view key);

// Traits that follow from sizes or that no file states, for files of either format.
void derive_gemma2_scales(ModelConfig* config);
void derive_gemma3_scales(ModelConfig* config);
void derive_gemma4_traits(ModelConfig* config);

// The last `shared` layers read the keys and values of the last layer before them with the same window.
void share_keys(int64_t shared, std::vector<LayerTraits>* layers);

}  // namespace outrider
