// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_config.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "base/quote.h"

namespace outrider {
namespace {

constexpr uintmax_t kMaxFileBytes = uintmax_t{256} << 20;
constexpr int kMaxDepth = 64;
constexpr size_t kMaxNames = 10'000;

// Reads "bos_token" and the like: a string, or an object with "content". nullopt: the key is absent.
Result<std::optional<std::string_view>> spelling_of(const JsonField& names, std::string_view key) {
  auto field = names.find(key);
  if (!field) return std::optional<std::string_view>();
  if (field->is_object()) {
    OUTRIDER_TRY(field, field->at("content"));
  }
  OUTRIDER_TRY(const std::string_view spelling, field->string());
  return std::optional(spelling);
}

std::optional<TokenId> find_spelling(std::string_view spelling, const TokenizerSpec& spec) {
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.pieces[id] == spelling) return static_cast<TokenId>(id);
  }
  return std::nullopt;
}

// nullopt: the key is absent, or (pad_token) the token is not in the vocabulary.
Result<std::optional<TokenId>> named_token(const JsonField& config, std::string_view key,
                                           const TokenizerSpec& spec) {
  OUTRIDER_TRY(const std::optional<std::string_view> spelling, spelling_of(config, key));
  if (!spelling || spelling->empty()) return std::optional<TokenId>();
  const std::optional<TokenId> token = find_spelling(*spelling, spec);
  if (token || key == "pad_token") return token;
  return input_error(std::string(key) + ": " + quote(*spelling) + " is not in the vocabulary");
}

// Takes from `names`, for chat templates, the tokens that transformers gives them and no earlier file has
// named. Names end with "_token", but for the names below extra_special_tokens. BOS and EOS have places of
// their own.
Status add_template_tokens(const JsonField& names, std::string_view ending, TokenizerSpec& spec) {
  OUTRIDER_TRY(const std::vector<JsonField> members, names.members(kMaxNames));
  for (const JsonField& member : members) {
    const std::string_view key = member.key();
    const auto has_name = [&](const auto& token) { return token.first == key; };
    const bool is_token = key.ends_with(ending) && key != "bos_token" && key != "eos_token" &&
                          !member.is_null() && !member.is_bool();
    if (!is_token || std::ranges::any_of(spec.template_tokens, has_name)) continue;
    OUTRIDER_TRY(const std::optional<std::string_view> spelling, spelling_of(names, key));
    spec.template_tokens.emplace_back(key, *spelling);
  }
  const auto more = names.find("extra_special_tokens");
  return more && more->is_object() ? add_template_tokens(*more, "", spec) : Status();
}

Status fill_from_map(const JsonField& map, TokenizerSpec& spec) {
  const std::pair<std::string_view, std::optional<TokenId>*> tokens[] = {
      {"bos_token", &spec.bos}, {"eos_token", &spec.eos}, {"pad_token", &spec.pad}};
  for (const auto& [key, token] : tokens) {
    OUTRIDER_TRY(const std::optional<std::string_view> spelling, spelling_of(map, key));
    if (spelling && !token->has_value()) *token = find_spelling(*spelling, spec);
  }
  return add_template_tokens(map, "_token", spec);
}

Status apply_names(const JsonField& config, TokenizerSpec& spec) {
  OUTRIDER_TRY(spec.bos, named_token(config, "bos_token", spec));
  OUTRIDER_TRY(spec.eos, named_token(config, "eos_token", spec));
  OUTRIDER_TRY(spec.pad, named_token(config, "pad_token", spec));
  return add_template_tokens(config, "_token", spec);
}

Status apply_additions(const JsonField& config, TokenizerSpec& spec) {
  if (!config.find("add_bos_token") && !config.find("add_eos_token")) return {};
  // Either key replaces the template of tokenizer.json, as in transformers.
  OUTRIDER_TRY(const bool add_bos, config.boolean_at("add_bos_token", false));
  OUTRIDER_TRY(const bool add_eos, config.boolean_at("add_eos_token", false));
  spec.prefix.clear();
  spec.suffix.clear();
  spec.add_bos = add_bos && spec.bos;
  spec.add_eos = add_eos && spec.eos;
  return {};
}

// Reads the object in `text`, if there is one.
Status apply(std::string_view text, const std::string& name, Status (*read)(const JsonField&, TokenizerSpec&),
             TokenizerSpec& spec) {
  if (text.empty()) return {};
  OUTRIDER_TRY(const JsonDocument document, parse_object(text, name));
  const Status status = read(document.root(), spec);
  return status.ok() ? status : Status(in_file(name, status.error()));
}

}  // namespace

Result<std::string> read_tokenizer_file(const std::filesystem::path& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return io_error(path.string() + ": " + error.message());
  if (bytes > kMaxFileBytes) {
    return input_error(path.string() + ": has " + std::to_string(bytes) + " bytes, at most " +
                       std::to_string(kMaxFileBytes) + " are supported");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return io_error(path.string() + ": cannot be read");
  return std::move(text).str();
}

Error in_file(std::string_view name, const Error& error) {
  return {error.kind, std::string(name) + ": " + error.message};
}

Result<JsonDocument> parse_object(std::string_view text, std::string_view name) {
  auto document = JsonDocument::parse(text, kMaxDepth);
  if (!document.ok()) return in_file(name, document.error());
  if (!document->root().is_object()) return in_file(name, document->root().expected("a JSON object"));
  return document;
}

Status apply_tokenizer_config(const SpecialTokenTexts& texts, std::string_view name, TokenizerSpec& spec) {
  OUTRIDER_RETURN_IF_ERROR(
      apply(texts.config, std::string(name) + " (tokenizer_config.json)", apply_names, spec));
  OUTRIDER_RETURN_IF_ERROR(
      apply(texts.special_tokens, std::string(name) + " (special_tokens_map.json)", fill_from_map, spec));
  return apply(texts.config, std::string(name) + " (tokenizer_config.json)", apply_additions, spec);
}

Result<std::string> read_optional_file(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::string();
  return read_tokenizer_file(path);
}

}  // namespace outrider
