// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer_config.h"

#include <fstream>
#include <optional>
#include <sstream>

#include "base/quote.h"

namespace outrider {
namespace {

constexpr uintmax_t kMaxFileBytes = uintmax_t{256} << 20;
constexpr int kMaxDepth = 64;

// Reads "bos_token" and the like: a string, or an object with "content". nullopt: the key is absent, or
// (pad_token) the token is not in the vocabulary.
Result<std::optional<TokenId>> named_token(const JsonField& config, std::string_view key,
                                           const TokenizerSpec& spec) {
  auto field = config.find(key);
  if (!field) return std::optional<TokenId>();
  if (field->is_object()) {
    OUTRIDER_TRY(field, field->at("content"));
  }
  OUTRIDER_TRY(const std::string_view piece, field->string());
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.pieces[id] == piece) return std::optional<TokenId>(static_cast<TokenId>(id));
  }
  if (key == "pad_token") return std::optional<TokenId>();
  return input_error(std::string(key) + ": " + quote(piece) + " is not in the vocabulary");
}

Status apply_config(const JsonField& config, TokenizerSpec& spec) {
  OUTRIDER_TRY(spec.bos, named_token(config, "bos_token", spec));
  OUTRIDER_TRY(spec.eos, named_token(config, "eos_token", spec));
  OUTRIDER_TRY(spec.pad, named_token(config, "pad_token", spec));
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

Status apply_tokenizer_config(std::string_view config, std::string_view name, TokenizerSpec& spec) {
  const std::string config_name = std::string(name) + " (tokenizer_config.json)";
  OUTRIDER_TRY(const JsonDocument document, parse_object(config, config_name));
  const Status status = apply_config(document.root(), spec);
  return status.ok() ? status : Status(in_file(config_name, status.error()));
}

Result<std::string> read_tokenizer_config(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return std::string();
  return read_tokenizer_file(path);
}

}  // namespace outrider
