// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/model_config.h"
#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider {

// Reads the text of config.json and of generation_config.json (empty: there is none). Its end-of-text ids
// take precedence. Missing keys have the defaults of Hugging Face's configuration class of the family.
//
// Errors: malformed JSON; an architecture, RoPE scaling, activation or quantization that is not supported
// (named, with the list of what is); missing or mistyped keys; numbers that fail validate().
Result<ModelConfig> parse_hf_config(std::string_view config_json,
                                    std::string_view generation_config_json = {});

// Reads "eos_token_id", a number or a list of numbers; an absent key changes nothing.
Status read_stop_tokens(const JsonObject& root, std::vector<TokenId>* stop_tokens);

// Reads generation_config.json (optional) of a directory, and config.json or, in the second function, the
// document that was read from it.
Result<ModelConfig> read_hf_config(const std::filesystem::path& directory);
Result<ModelConfig> read_hf_config(const JsonFile& document, const std::filesystem::path& directory);

// config.json of a directory, by that name in messages.
Result<JsonFile> read_hf_document(const std::filesystem::path& directory);

// Reads the same keys for the layers of a learned drafter. The name of its architecture does not describe its
// layers. Biases and norms of queries and keys stay off; absent keys have Llama's defaults, and a sliding
// window counts where "use_sliding_window" turns it on.
Result<ModelConfig> read_layer_config(const JsonObject& root);

}  // namespace outrider
