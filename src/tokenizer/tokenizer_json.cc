// SPDX-License-Identifier: Apache-2.0
// Reads tokenizer.json of Hugging Face tokenizers, model types BPE and Unigram, and some keys of
// tokenizer_config.json.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "base/json_reader.h"
#include "base/quote.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json_pipeline.h"

namespace outrider {
namespace {

class TokenizerJsonReader {
 public:
  explicit TokenizerJsonReader(const JsonField& root) : root_(root) {}

  Result<TokenizerSpec> run() {
    OUTRIDER_TRY(const JsonField model, root_.at("model"));
    OUTRIDER_TRY(const std::string_view type, model.string_at("type", "BPE"));
    if (type != "BPE" && type != "Unigram") {
      return model.unsupported("a model of type", type, {"BPE", "Unigram"});
    }
    OUTRIDER_RETURN_IF_ERROR(read_pipeline(root_, spec_));
    OUTRIDER_RETURN_IF_ERROR(type == "BPE" ? read_bpe(model) : read_unigram(model));
    return std::move(spec_);
  }

 private:
  Status read_bpe(const JsonField& model) {
    OUTRIDER_RETURN_IF_ERROR(read_options(model));
    OUTRIDER_RETURN_IF_ERROR(read_vocabulary(model));
    const size_t vocabulary_end = model_tokens_;
    OUTRIDER_RETURN_IF_ERROR(read_added_tokens());
    OUTRIDER_RETURN_IF_ERROR(mark_gaps(vocabulary_end));
    OUTRIDER_RETURN_IF_ERROR(read_unknown(model));
    return read_merges(model);
  }

  Status read_unigram(const JsonField& model) {
    if (spec_.kind == TokenizerKind::kByteLevelBpe) {
      return model.fail("Unigram together with a ByteLevel pre-tokenizer is not supported");
    }
    spec_.kind = TokenizerKind::kUnigram;
    OUTRIDER_TRY(spec_.byte_fallback, model.boolean_at("byte_fallback", false));
    OUTRIDER_RETURN_IF_ERROR(read_scored_vocabulary(model));
    const size_t vocabulary_end = model_tokens_;
    OUTRIDER_RETURN_IF_ERROR(read_added_tokens());
    OUTRIDER_RETURN_IF_ERROR(mark_gaps(vocabulary_end));
    spec_.scores.resize(model_tokens_,
                        0.0);  // added tokens after the vocabulary are never looked for by score
    const auto unknown = model.find("unk_id");
    if (!unknown) return {};
    OUTRIDER_TRY(const TokenId id, token_id(*unknown));
    if (static_cast<size_t>(id) >= model_tokens_)
      return unknown->fail("token " + std::to_string(id) + " is not in the vocabulary");
    spec_.unknown = id;
    return {};
  }

  // Reads [["piece", score], ...]; the place of a pair is the id.
  Status read_scored_vocabulary(const JsonField& model) {
    OUTRIDER_TRY(const JsonField field, model.at("vocab"));
    OUTRIDER_TRY(const simdjson::dom::array entries, field.array());
    OUTRIDER_RETURN_IF_ERROR(reserve_tokens(count(entries)));
    return field.each([&](const JsonField& entry) -> Status {
      std::string_view piece;
      double score = 0;
      size_t index = 0;
      OUTRIDER_RETURN_IF_ERROR(entry.each([&](const JsonField& item) -> Status {
        if (index == 0) {
          OUTRIDER_TRY(piece, item.string());
        } else if (index == 1) {
          OUTRIDER_TRY(
              score, item.number(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()));
        }
        ++index;
        return {};
      }));
      if (index != 2) return entry.expected("a piece and its score");
      if (piece.empty()) return input_error(field.path() + ": the vocabulary has an empty token");
      append_scored(piece, score);
      return {};
    });
  }

  void append_scored(std::string_view piece, double score) {
    if (spec_.byte_fallback && is_byte_piece(piece)) spec_.attributes[model_tokens_] = TokenAttribute::kByte;
    spec_.pieces[model_tokens_++] = piece;
    spec_.scores.push_back(score);
  }

  Status read_options(const JsonField& model) {
    if (const auto dropout = model.find("dropout")) {
      return input_error(dropout->path() + ": BPE dropout is for training; expected null");
    }
    for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      OUTRIDER_TRY(const std::string_view affix, model.string_at(name, ""));
      if (!affix.empty()) return model.unsupported(name, affix, {"\"\""});
    }
    OUTRIDER_TRY(spec_.fuse_unknown, model.boolean_at("fuse_unk", false));
    OUTRIDER_TRY(spec_.byte_fallback, model.boolean_at("byte_fallback", false));
    OUTRIDER_TRY(spec_.ignore_merges, model.boolean_at("ignore_merges", false));
    if (spec_.byte_fallback && spec_.kind == TokenizerKind::kByteLevelBpe) {
      return input_error("model.byte_fallback: not supported together with a ByteLevel pre-tokenizer");
    }
    return {};
  }

  Result<TokenId> token_id(const JsonField& field) const {
    OUTRIDER_TRY(const int64_t id, field.integer());
    if (id >= 0 && static_cast<uint64_t>(id) < max_tokens_) return static_cast<TokenId>(id);
    return input_error(field.path() + ": token id " + std::to_string(id) + " is not in 0.." +
                       std::to_string(static_cast<int64_t>(max_tokens_) - 1) + ", which is the range for " +
                       std::to_string(max_tokens_ / kIdsPerToken) + " tokens");
  }

  Status set_piece(const JsonField& field, TokenId id, std::string_view piece) {
    std::string& slot = spec_.pieces[id];
    if (!slot.empty() && slot != piece) {
      return input_error(field.path() + ": token id " + std::to_string(id) + " is " + quote(slot) +
                         " already");
    }
    slot = piece;
    return {};
  }

  Status read_vocabulary(const JsonField& model) {
    OUTRIDER_TRY(const JsonField field, model.at("vocab"));
    OUTRIDER_TRY(const simdjson::dom::object vocabulary, field.object());
    OUTRIDER_RETURN_IF_ERROR(reserve_tokens(count(vocabulary)));
    for (const auto& entry : vocabulary) {
      const JsonField value = field.member(entry.key, entry.value);
      if (entry.key.empty()) return input_error(field.path() + ": the vocabulary has an empty token");
      OUTRIDER_TRY(const TokenId id, token_id(value));
      OUTRIDER_RETURN_IF_ERROR(set_piece(value, id, entry.key));
      if (spec_.byte_fallback && is_byte_piece(entry.key)) spec_.attributes[id] = TokenAttribute::kByte;
      model_tokens_ = std::max(model_tokens_, static_cast<size_t>(id) + 1);
    }
    return {};
  }

  // simdjson's own size() stops at 2^24 - 1.
  template <typename Container>
  static size_t count(const Container& container) {
    return static_cast<size_t>(std::distance(container.begin(), container.end()));
  }

  // Makes room for a vocabulary and the added tokens. Ids may have gaps, but a bound of the ids bounds the
  // memory.
  Status reserve_tokens(size_t entries) {
    size_t added = 0;
    if (const auto tokens = root_.find("added_tokens")) {
      OUTRIDER_TRY(const simdjson::dom::array elements, tokens->array());
      added = count(elements);
    }
    max_tokens_ = kIdsPerToken * (entries + added);
    spec_.pieces.resize(max_tokens_);
    spec_.attributes.assign(max_tokens_, TokenAttribute::kNormal);
    return {};
  }

  static bool is_byte_piece(std::string_view piece) {
    return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>') &&
           piece.substr(3, 2).find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
  }

  Status read_added_tokens() {
    const auto field = root_.find("added_tokens");
    if (!field) return {};
    return field->each([&](const JsonField& token) { return read_added_token(token); });
  }

  Status read_added_token(const JsonField& field) {
    OUTRIDER_TRY(const JsonField id_field, field.at("id"));
    OUTRIDER_TRY(const JsonField content_field, field.at("content"));
    AddedToken token;
    OUTRIDER_TRY(token.id, token_id(id_field));
    OUTRIDER_TRY(const std::string_view content, content_field.string());
    if (content.empty())
      return input_error(content_field.path() + ": expected an added token, found an empty string");
    OUTRIDER_TRY(token.single_word, field.boolean_at("single_word", false));
    OUTRIDER_TRY(token.lstrip, field.boolean_at("lstrip", false));
    OUTRIDER_TRY(token.rstrip, field.boolean_at("rstrip", false));
    OUTRIDER_TRY(const bool special, field.boolean_at("special", false));
    OUTRIDER_TRY(token.normalized, field.boolean_at("normalized", !special));
    const bool in_model = !spec_.pieces[token.id].empty();
    OUTRIDER_RETURN_IF_ERROR(set_piece(content_field, token.id, content));
    if (special) {
      spec_.attributes[token.id] = TokenAttribute::kControl;
    } else if (!in_model) {
      spec_.attributes[token.id] = TokenAttribute::kUserDefined;
    }
    spec_.added_tokens.push_back(token);
    model_tokens_ = std::max(model_tokens_, static_cast<size_t>(token.id) + 1);
    return {};
  }

  // Ids below `vocabulary_end` may have gaps. The reference library gives other ids than the file to added
  // tokens after a gap.
  Status mark_gaps(size_t vocabulary_end) {
    spec_.pieces.resize(model_tokens_);
    spec_.attributes.resize(model_tokens_);
    for (size_t id = 0; id < model_tokens_; ++id) {
      if (!spec_.pieces[id].empty()) continue;
      if (id >= vocabulary_end) {
        return input_error("added_tokens: no token has the id " + std::to_string(id) +
                           "; expected ids without gaps after those of model.vocab, 0.." +
                           std::to_string(static_cast<int64_t>(vocabulary_end) - 1));
      }
      spec_.attributes[id] = TokenAttribute::kUnused;
    }
    return {};
  }

  Status read_unknown(const JsonField& model) {
    OUTRIDER_TRY(const std::string_view piece, model.string_at("unk_token", ""));
    if (piece.empty()) return {};
    for (size_t id = 0; id < spec_.pieces.size(); ++id) {
      if (spec_.pieces[id] == piece) spec_.unknown = static_cast<TokenId>(id);
    }
    if (!spec_.unknown) {
      return input_error("model.unk_token: " + quote(piece) + " is not in the vocabulary");
    }
    return {};
  }

  Status read_merges(const JsonField& model) {
    OUTRIDER_TRY(const JsonField field, model.at("merges"));
    OUTRIDER_TRY(const simdjson::dom::array elements, field.array());
    size_t index = 0;
    for (const simdjson::dom::element element : elements) {
      const bool is_pair = element.is_array();
      Result<std::pair<std::string, std::string>> merge =
          is_pair ? merge_of_pair(element) : merge_of_text(element);
      if (!merge.ok()) {
        return input_error("model.merges[" + std::to_string(index) +
                           "]: " + std::move(merge).error().message);
      }
      spec_.merges.push_back(std::move(*merge));
      ++index;
    }
    return {};
  }

  static Result<std::pair<std::string, std::string>> merge_of_pair(simdjson::dom::element element) {
    std::string_view parts[2];
    const simdjson::dom::array pair = element;
    if (pair.size() != 2 || pair.at(0).get_string().get(parts[0]) != simdjson::SUCCESS ||
        pair.at(1).get_string().get(parts[1]) != simdjson::SUCCESS) {
      return input_error("expected two strings");
    }
    return std::pair(std::string(parts[0]), std::string(parts[1]));
  }

  static Result<std::pair<std::string, std::string>> merge_of_text(simdjson::dom::element element) {
    std::string_view text;
    if (element.get_string().get(text) != simdjson::SUCCESS)
      return input_error("expected \"a b\" or [\"a\", \"b\"]");
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      return input_error("expected two pieces with one space between, found " + quote(text));
    }
    return std::pair(std::string(text.substr(0, space)), std::string(text.substr(space + 1)));
  }

  static constexpr size_t kIdsPerToken = 4;

  const JsonField& root_;
  TokenizerSpec spec_;
  size_t max_tokens_ = 0;    // ids are below
  size_t model_tokens_ = 0;  // one past the greatest id so far
};

}  // namespace

Result<TokenizerSpec> parse_tokenizer_json(const TokenizerJsonText& text) {
  OUTRIDER_TRY(const JsonDocument document, parse_object(text.tokenizer, text.name));
  const JsonField root = document.root();
  Result<TokenizerSpec> spec = TokenizerJsonReader(root).run();
  if (!spec.ok()) return in_file(text.name, spec.error());
  OUTRIDER_RETURN_IF_ERROR(apply_tokenizer_config(
      {.config = text.config, .special_tokens = text.special_tokens}, text.name, *spec));
  return spec;
}

Result<TokenizerSpec> read_tokenizer_json(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "tokenizer.json";
  OUTRIDER_TRY(const std::string tokenizer, read_tokenizer_file(path));
  OUTRIDER_TRY(const std::string config, read_optional_file(directory / "tokenizer_config.json"));
  OUTRIDER_TRY(const std::string special_tokens, read_optional_file(directory / "special_tokens_map.json"));
  return parse_tokenizer_json(
      {.name = path.string(), .tokenizer = tokenizer, .config = config, .special_tokens = special_tokens});
}

}  // namespace outrider
