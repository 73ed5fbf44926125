// SPDX-License-Identifier: Apache-2.0
// The parts that the readers of tokenizer files share: files, JSON objects and tokenizer_config.json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

// The text of a file of at most 256 MiB.
Result<std::string> read_tokenizer_file(const std::filesystem::path& path);
// The text of tokenizer_config.json of a directory; empty where there is none.
Result<std::string> read_tokenizer_config(const std::filesystem::path& directory);

// A JSON text whose root is an object. Errors begin with `name`.
Result<JsonDocument> parse_object(std::string_view text, std::string_view name);
// `error` with `name` before its message.
Error in_file(std::string_view name, const Error& error);

// Sets BOS, EOS and padding, and whether BOS and EOS are added, as the text of tokenizer_config.json says.
// `name` is for messages.
Status apply_tokenizer_config(std::string_view config, std::string_view name, TokenizerSpec& spec);

}  // namespace outrider
