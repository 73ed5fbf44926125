// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_tokenizer_export.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/quote.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_pieces.h"

namespace outrider {
namespace {

// The numbers of llama.cpp's token types.
constexpr int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

int32_t type_number(TokenAttribute attribute) {
  switch (attribute) {
    case TokenAttribute::kNormal:
      return kNormal;
    case TokenAttribute::kUnknown:
      return kUnknown;
    case TokenAttribute::kControl:
      return kControl;
    case TokenAttribute::kUserDefined:
      return kUserDefined;
    case TokenAttribute::kUnused:
      return kUnused;
    case TokenAttribute::kByte:
      return kByte;
  }
  return kNormal;
}

class TokenizerExporter {
 public:
  TokenizerExporter(const TokenizerSpec& spec, int64_t vocab_size, GgufMetadataWriter* metadata)
      : spec_(spec), vocab_size_(static_cast<size_t>(vocab_size)), metadata_(metadata) {}

  Result<std::vector<std::string>> run() {
    if (spec_.kind == TokenizerKind::kUnigram) {
      return input_error(
          "writing a unigram tokenizer to GGUF is not supported; BPE and SentencePiece BPE are");
    }
    write_pieces();
    OUTRIDER_RETURN_IF_ERROR(spec_.kind == TokenizerKind::kByteLevelBpe ? write_byte_level()
                                                                        : write_sentencepiece());
    write_special_ids();
    write_what_surrounds_a_text();
    note_lost_options();
    return std::move(notes_);
  }

 private:
  void write_pieces() {
    std::vector<std::string> pieces = spec_.pieces;
    std::vector<int32_t> types;
    for (const TokenAttribute attribute : spec_.attributes) types.push_back(type_number(attribute));
    // An added token is looked for before the pieces even where it is a piece of the model, too.
    for (const AddedToken& token : spec_.added_tokens) {
      int32_t& type = types[static_cast<size_t>(token.id)];
      if (type == kNormal) type = kUserDefined;
    }
    if (spec_.kind == TokenizerKind::kSentencePiece && spec_.unknown) {
      types[static_cast<size_t>(*spec_.unknown)] = kUnknown;
    }
    while (pieces.size() < vocab_size_) {
      pieces.push_back("[PAD" + std::to_string(pieces.size()) + "]");
      types.push_back(kUnused);
    }
    metadata_->set_strings("tokenizer.ggml.tokens", pieces);
    metadata_->set_integers("tokenizer.ggml.token_type", types);
  }

  Status write_byte_level() {
    const auto name = gguf_pre_tokenizer_name(spec_);
    if (!name) {
      return input_error(
          "the tokenizer's normalizer and pre-tokenizer have no name in GGUF; those of the Llama 3, Qwen, "
          "GPT-2, GPT-4o, SmolLM, StarCoder, Falcon and Mistral (tekken) families have");
    }
    metadata_->set_string("tokenizer.ggml.model", "gpt2");
    metadata_->set_string("tokenizer.ggml.pre", *name);
    std::vector<std::string> merges;
    merges.reserve(spec_.merges.size());
    for (const auto& [left, right] : spec_.merges) merges.push_back(left + " " + right);
    metadata_->set_strings("tokenizer.ggml.merges", merges);
    return {};
  }

  Status write_sentencepiece() {
    if (!spec_.byte_fallback || !spec_.normalizer.empty() || spec_.ignore_merges) {
      return input_error(
          "GGUF has no SentencePiece tokenizer without byte_fallback, with a normalizer, or with "
          "ignore_merges");
    }
    OUTRIDER_RETURN_IF_ERROR(check_marks());
    OUTRIDER_TRY(const std::vector<float> scores, scores_of_merges());
    metadata_->set_string("tokenizer.ggml.model", "llama");
    metadata_->set_string("tokenizer.ggml.pre", "default");
    metadata_->set_floats("tokenizer.ggml.scores", scores);
    metadata_->set_bool("tokenizer.ggml.add_space_prefix", spec_.add_space_prefix);
    if (spec_.space_rule == SpaceRule::kMetaspaceFirst && spec_.add_space_prefix) {
      notes_.push_back("GGUF puts a space before the text after every special token, not only at the start");
    }
    return {};
  }

  // A split at every U+2581 changes nothing as long as no piece has one inside, so it need not be written.
  Status check_marks() const {
    if (spec_.split_patterns.empty()) return {};
    for (size_t id = 0; id < spec_.pieces.size(); ++id) {
      if (spec_.attributes[id] != TokenAttribute::kNormal) continue;
      if (spec_.pieces[id].find(kSpaceMark, 1) == std::string::npos) continue;
      return input_error("GGUF cannot say that the tokenizer splits text at spaces, and piece " +
                         quote(spec_.pieces[id]) + " spans one");
    }
    return {};
  }

  // GGUF merges the neighbours with the greatest score of the joined piece. This equals the order of the
  // ranks when the merges of a piece follow each other, and when every way to join two pieces to a third is a
  // merge.
  Result<std::vector<float>> scores_of_merges() const {
    const Error not_scores = input_error(
        "GGUF stores SentencePiece vocabularies with scores, which cannot stand for this tokenizer's merges; "
        "only tokenizers converted from SentencePiece can be written");
    std::unordered_map<std::string, size_t> ids;
    for (size_t id = 0; id < spec_.pieces.size(); ++id) ids.emplace(spec_.pieces[id], id);
    std::vector<float> scores(vocab_size_, 0);
    std::unordered_set<std::string> merges;
    std::optional<size_t> last;
    float score = 0;
    for (const auto& [left, right] : spec_.merges) {
      merges.insert(left + " " + right);
      const auto found = ids.find(left + right);
      if (found == ids.end()) return not_scores;
      if (last == found->second) continue;
      last = found->second;
      if (scores[*last] != 0) return not_scores;
      scores[*last] = --score;
    }
    for (size_t id = 0; id < spec_.pieces.size(); ++id) {
      if (spec_.attributes[id] != TokenAttribute::kNormal) continue;
      if (scores[id] == 0) scores[id] = score - 1;
      const std::string& piece = spec_.pieces[id];
      for (size_t cut = 1; cut < piece.size(); ++cut) {
        const std::string left = piece.substr(0, cut), right = piece.substr(cut);
        if (ids.contains(left) && ids.contains(right) && !merges.contains(left + " " + right)) {
          return not_scores;
        }
      }
    }
    return scores;
  }

  void write_id(const char* key, std::optional<TokenId> id) {
    if (id) metadata_->set_u32(key, *id);
  }

  void write_special_ids() {
    write_id("tokenizer.ggml.bos_token_id", spec_.bos);
    write_id("tokenizer.ggml.eos_token_id", spec_.eos);
    write_id("tokenizer.ggml.unknown_token_id", spec_.unknown);
    write_id("tokenizer.ggml.padding_token_id", spec_.pad);
  }

  // GGUF knows a template of one token at either end as adding BOS and EOS.
  void write_what_surrounds_a_text() {
    const auto is_one = [](const std::vector<TokenId>& tokens, std::optional<TokenId> known) {
      return tokens.size() == 1 && (!known || *known == tokens.front());
    };
    const bool bos_in_template = is_one(spec_.prefix, spec_.bos);
    const bool eos_in_template = is_one(spec_.suffix, spec_.eos);
    if (bos_in_template) write_id("tokenizer.ggml.bos_token_id", spec_.prefix.front());
    if (eos_in_template) write_id("tokenizer.ggml.eos_token_id", spec_.suffix.front());
    metadata_->set_bool("tokenizer.ggml.add_bos_token", spec_.add_bos || bos_in_template);
    metadata_->set_bool("tokenizer.ggml.add_eos_token", spec_.add_eos || eos_in_template);
    if ((!spec_.prefix.empty() && !bos_in_template) || (!spec_.suffix.empty() && !eos_in_template)) {
      notes_.push_back(
          "the tokens that the tokenizer puts around a text are more than BOS and EOS, which is "
          "all GGUF knows; they are left out");
    }
  }

  void note_lost_options() {
    for (const AddedToken& token : spec_.added_tokens) {
      if (!token.lstrip && !token.rstrip && !token.single_word) continue;
      notes_.push_back("GGUF cannot say that token " + quote(spec_.pieces[static_cast<size_t>(token.id)]) +
                       " takes the white space beside it, or stands alone");
    }
  }

  const TokenizerSpec& spec_;
  size_t vocab_size_;
  GgufMetadataWriter* metadata_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::vector<std::string>> export_tokenizer(const TokenizerSpec& spec, int64_t vocab_size,
                                                  GgufMetadataWriter* metadata) {
  return TokenizerExporter(spec, vocab_size, metadata).run();
}

}  // namespace outrider
