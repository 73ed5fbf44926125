// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "formats/json_document.h"
#include "formats/model_config.h"
#include "outrider/result.h"

namespace outrider {

// The text of config.json and, when there is one (else empty), generation_config.json, whose end-of-text ids
// take precedence. Missing keys have the defaults of Hugging Face's configuration class of the family.
//
// Errors: malformed JSON; an architecture, RoPE scaling, activation or quantization that is not supported
// (named, with the list of what is); missing or mistyped keys; numbers that fail validate().
Result<ModelConfig> parse_hf_config(std::string_view config_json,
                                    std::string_view generation_config_json = {});

// config.json and generation_config.json (optional) of a directory.
Result<ModelConfig> read_hf_config(const std::filesystem::path& directory);

// The same keys of the layers of a drafter, whose architecture says nothing of them: biases and norms of
// queries and keys are left out, what is absent is as in Llama.
Result<ModelConfig> read_layer_config(const JsonObject& root);

}  // namespace outrider
