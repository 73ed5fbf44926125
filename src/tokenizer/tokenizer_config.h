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
// The same; empty where there is no such file.
Result<std::string> read_optional_file(const std::filesystem::path& path);

// A JSON text whose root is an object. Errors begin with `name`.
Result<JsonDocument> parse_object(std::string_view text, std::string_view name);
// `error` with `name` before its message.
Error in_file(std::string_view name, const Error& error);

// The texts of tokenizer_config.json and special_tokens_map.json; empty where there is no such file.
struct SpecialTokenTexts {
  std::string_view config;
  std::string_view special_tokens;  // names what `config` does not name
};

// Sets BOS, EOS, padding and the tokens of templates, and whether BOS and EOS are added, as these texts say.
// `name` is for messages.
Status apply_tokenizer_config(const SpecialTokenTexts& texts, std::string_view name, TokenizerSpec& spec);

}  // namespace outrider
