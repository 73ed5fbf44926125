// SPDX-License-Identifier: Apache-2.0
// Reads vocab.json and merges.txt, the files of GPT-2's tokenizer, which OPT has instead of tokenizer.json.
#include <limits>
#include <sstream>

#include "base/quote.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

namespace outrider {
namespace {

// Ids may have gaps, but a bound of the ids bounds the memory.
constexpr int64_t kIdsPerToken = 4;

Status read_pieces(const JsonField& vocabulary, TokenizerSpec& spec) {
  OUTRIDER_TRY(const auto entries, vocabulary.members(std::numeric_limits<TokenId>::max()));
  for (const JsonField& entry : entries) {
    OUTRIDER_TRY(const int64_t id, entry.integer(0, kIdsPerToken * static_cast<int64_t>(entries.size()) - 1));
    const auto index = static_cast<size_t>(id);
    if (index >= spec.pieces.size()) spec.pieces.resize(index + 1);
    std::string& piece = spec.pieces[index];
    if (!piece.empty()) return entry.fail("the id is that of " + quote(piece) + " already");
    piece = entry.key();
  }
  for (const std::string& piece : spec.pieces)
    spec.attributes.push_back(piece.empty() ? TokenAttribute::kUnused : TokenAttribute::kNormal);
  return {};
}

// A line is "left right"; the first one may tell a version.
Status read_merge_lines(std::string_view text, TokenizerSpec& spec) {
  std::istringstream lines{std::string(text)};
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string::npos) {
      return input_error("line " + std::to_string(number) +
                         ": expected two pieces with one space between, found " + quote(line));
    }
    spec.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return {};
}

// The named tokens of the configuration are looked for before anything else.
void add_special_tokens(TokenizerSpec& spec) {
  for (const std::optional<TokenId> id : {spec.bos, spec.eos, spec.unknown, spec.pad}) {
    if (!id || spec.attributes[static_cast<size_t>(*id)] == TokenAttribute::kControl) continue;
    spec.attributes[static_cast<size_t>(*id)] = TokenAttribute::kControl;
    spec.added_tokens.push_back({.id = *id});
  }
}

}  // namespace

Result<TokenizerSpec> parse_gpt2_files(const Gpt2FilesText& text) {
  TokenizerSpec spec;
  const std::string vocabulary_name = std::string(text.name) + "/vocab.json";
  OUTRIDER_TRY(const JsonDocument vocabulary, parse_object(text.vocabulary, vocabulary_name));
  if (const Status status = read_pieces(vocabulary.root(), spec); !status.ok()) {
    return in_file(vocabulary_name, status.error());
  }
  if (const Status status = read_merge_lines(text.merges, spec); !status.ok()) {
    return in_file(std::string(text.name) + "/merges.txt", status.error());
  }
  OUTRIDER_RETURN_IF_ERROR(apply_gguf_pre_tokenizer("gpt-2", spec));
  OUTRIDER_RETURN_IF_ERROR(apply_tokenizer_config(
      {.config = text.config, .special_tokens = text.special_tokens}, text.name, spec));
  if (!text.config.empty()) {
    OUTRIDER_TRY(const JsonDocument config, parse_object(text.config, text.name));
    OUTRIDER_TRY(spec.add_space_prefix, config.root().boolean_at("add_prefix_space", false));
  }
  add_special_tokens(spec);
  return spec;
}

Result<TokenizerSpec> read_gpt2_files(const std::filesystem::path& directory) {
  OUTRIDER_TRY(const std::string vocabulary, read_tokenizer_file(directory / "vocab.json"));
  OUTRIDER_TRY(const std::string merges, read_tokenizer_file(directory / "merges.txt"));
  OUTRIDER_TRY(const std::string config, read_optional_file(directory / "tokenizer_config.json"));
  OUTRIDER_TRY(const std::string special_tokens, read_optional_file(directory / "special_tokens_map.json"));
  return parse_gpt2_files({.name = directory.string(),
                           .vocabulary = vocabulary,
                           .merges = merges,
                           .config = config,
                           .special_tokens = special_tokens});
}

}  // namespace outrider
