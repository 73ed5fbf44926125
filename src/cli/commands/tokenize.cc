// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/commands/commands.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "setup/open_engine.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

// Needs no weights, so a directory or file with only a tokenizer is enough.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const Settings& settings) {
  OUTRIDER_TRY(const std::filesystem::path model, chosen_model(settings));
  std::error_code code;
  auto spec =
      std::filesystem::is_directory(model, code) ? read_tokenizer_json(model) : read_gguf_tokenizer(model);
  if (!spec.ok()) return std::move(spec).error();
  return Tokenizer::create(std::move(spec).value());
}

Status check_in_vocabulary(const std::vector<TokenId>& tokens, const Tokenizer& tokenizer) {
  for (const TokenId token : tokens) {
    if (token < tokenizer.vocab_size()) continue;
    return input_error(fmt::format("--ids: expected ids below the vocabulary's size {}, found {}",
                                   tokenizer.vocab_size(), token));
  }
  return {};
}

std::string comma_separated(const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens) text += (text.empty() ? "" : ",") + std::to_string(token);
  return text;
}

}  // namespace

Status run_tokenize(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_one_input(settings, "--text, --file and --ids"));
  OUTRIDER_TRY(const std::shared_ptr<const Tokenizer> tokenizer, open_tokenizer(settings));
  std::vector<TokenId> tokens;
  std::string text;
  if (settings.prompt_ids) {
    tokens = *settings.prompt_ids;
    OUTRIDER_RETURN_IF_ERROR(check_in_vocabulary(tokens, *tokenizer));
    text = tokenizer->decode(tokens, false);
  } else {
    OUTRIDER_TRY(text, input_text(settings));
    tokens = tokenizer->encode(text);
  }
  if (settings.json) {
    nlohmann::ordered_json json;
    json["token_ids"] = tokens;
    json["tokens"] = nlohmann::ordered_json::array();
    for (const TokenId token : tokens) json["tokens"].push_back(tokenizer->token_piece(token));
    json["text"] = text;
    write_output(json_line(json));
  } else if (settings.prompt_ids) {
    write_output(text + "\n");
  } else {
    write_output(comma_separated(tokens) + "\n");
  }
  return {};
}

}  // namespace outrider
