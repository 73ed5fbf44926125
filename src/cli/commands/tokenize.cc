// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "open/parts.h"
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

// The `count` most frequent ids, most frequent first, lower ids first among equals; fewer where the text has
// fewer.
std::vector<TokenId> frequent_tokens(std::span<const TokenId> tokens, int64_t count) {
  std::map<TokenId, int64_t> occurrences;
  for (const TokenId token : tokens) ++occurrences[token];
  std::vector<TokenId> ids;
  for (const auto& [id, times] : occurrences) ids.push_back(id);
  std::ranges::stable_sort(ids, std::greater(), [&](TokenId id) { return occurrences[id]; });
  ids.resize(std::min(ids.size(), static_cast<size_t>(count)));
  return ids;
}

}  // namespace

Status run_tokenize(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_one_input(settings, "--text, --file and --ids"));
  OUTRIDER_TRY(const std::shared_ptr<const Tokenizer> tokenizer, open_tokenizer(settings));
  std::vector<TokenId> tokens;
  std::string text;
  if (settings.input.ids) {
    tokens = *settings.input.ids;
    OUTRIDER_RETURN_IF_ERROR(check_in_vocabulary(tokens, *tokenizer));
    text = tokenizer->decode(tokens, false);
  } else {
    OUTRIDER_TRY(text, input_text(settings));
    tokens = tokenizer->encode(text);
  }
  if (settings.tokenize.frequent) {
    write_output(json_line(nlohmann::ordered_json(frequent_tokens(tokens, *settings.tokenize.frequent))));
  } else if (settings.json) {
    nlohmann::ordered_json json;
    json["token_ids"] = tokens;
    json["tokens"] = nlohmann::ordered_json::array();
    for (const TokenId token : tokens) json["tokens"].push_back(tokenizer->token_piece(token));
    json["text"] = text;
    write_output(json_line(json));
  } else if (settings.input.ids) {
    write_output(text + "\n");
  } else {
    write_output(comma_separated(tokens) + "\n");
  }
  return {};
}

}  // namespace outrider
