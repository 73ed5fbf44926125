// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/quote.h"
#include "formats/gguf/gguf_metadata.h"
#include "platform/mapped_file.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

constexpr size_t kMaxVocabulary = size_t{1} << 22;

Status read_pieces(const GgufMetadata& metadata, TokenizerSpec* spec) {
  OUTRIDER_TRY(const auto pieces, metadata.strings("tokenizer.ggml.tokens"));
  if (!pieces) return metadata.fail("tokenizer.ggml.tokens is missing");
  if (pieces->empty() || pieces->size() > kMaxVocabulary) {
    return metadata.fail("a vocabulary must have 1 to 4194304 tokens, found " +
                         std::to_string(pieces->size()));
  }
  spec->pieces.assign(pieces->begin(), pieces->end());
  return {};
}

Status read_attributes(const GgufMetadata& metadata, TokenizerSpec* spec) {
  constexpr std::array<TokenAttribute, 7> kByNumber = {TokenAttribute::kNormal,      TokenAttribute::kNormal,
                                                       TokenAttribute::kUnknown,     TokenAttribute::kControl,
                                                       TokenAttribute::kUserDefined, TokenAttribute::kUnused,
                                                       TokenAttribute::kByte};
  OUTRIDER_TRY(const auto numbers, metadata.integers("tokenizer.ggml.token_type"));
  spec->attributes.assign(spec->pieces.size(), TokenAttribute::kNormal);
  if (!numbers) return {};
  if (numbers->size() != spec->pieces.size()) {
    return metadata.fail("tokenizer.ggml.token_type must have one entry per token");
  }
  for (size_t i = 0; i < numbers->size(); ++i) {
    const int64_t number = (*numbers)[i];
    if (number < 0 || number >= static_cast<int64_t>(kByNumber.size())) {
      return metadata.fail("token " + std::to_string(i) + " has the unknown type " + std::to_string(number));
    }
    spec->attributes[i] = kByNumber[static_cast<size_t>(number)];
  }
  return {};
}

// Splits "left right". The left piece may begin with a space, so the search skips the first character.
Status read_merges(const GgufMetadata& metadata, TokenizerSpec* spec) {
  OUTRIDER_TRY(const auto merges, metadata.strings("tokenizer.ggml.merges"));
  if (!merges) return metadata.fail("tokenizer.ggml.merges is missing");
  spec->merges.reserve(merges->size());
  for (const std::string_view merge : *merges) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return metadata.fail("merge " + quote(merge) + " must be two pieces with a space between");
    }
    spec->merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return {};
}

Status read_byte_level(const GgufMetadata& metadata, TokenizerSpec* spec) {
  OUTRIDER_TRY(const auto stated_pre, metadata.string("tokenizer.ggml.pre"));
  const std::string_view pre = stated_pre.value_or("default");
  spec->kind = TokenizerKind::kByteLevelBpe;
  if (const Status known = apply_gguf_pre_tokenizer(pre, *spec); !known.ok()) {
    return metadata.fail(known.error().message);
  }
  return read_merges(metadata, spec);
}

Status read_scores(const GgufMetadata& metadata, TokenizerSpec* spec) {
  OUTRIDER_TRY(const auto scores, metadata.floats("tokenizer.ggml.scores"));
  if (!scores || scores->size() != spec->pieces.size()) {
    return metadata.fail("tokenizer.ggml.scores must have one entry per token");
  }
  spec->scores.assign(scores->begin(), scores->end());
  return {};
}

// The unigram vocabularies of SentencePiece; llama.cpp names them after T5.
Status read_unigram(const GgufMetadata& metadata, TokenizerSpec* spec) {
  OUTRIDER_RETURN_IF_ERROR(read_scores(metadata, spec));
  OUTRIDER_TRY(const auto charsmap, metadata.integers("tokenizer.ggml.precompiled_charsmap"));
  if (charsmap && !charsmap->empty()) {
    return metadata.fail("tokenizer.ggml.precompiled_charsmap: a precompiled normalizer is not supported");
  }
  OUTRIDER_TRY(const auto suffixes, metadata.boolean("tokenizer.ggml.treat_whitespace_as_suffix"));
  if (suffixes.value_or(false)) {
    return metadata.fail("tokenizer.ggml.treat_whitespace_as_suffix: spaces as suffixes are not supported");
  }
  OUTRIDER_TRY(const auto removes_spaces, metadata.boolean("tokenizer.ggml.remove_extra_whitespaces"));
  if (removes_spaces.value_or(false)) {
    spec->normalizer = {{.kind = NormalizerKind::kTrim, .trims_left = true, .trims_right = true},
                        {.kind = NormalizerKind::kReplace, .pattern = " {2,}", .content = " "}};
  }
  spec->kind = TokenizerKind::kUnigram;
  spec->fuse_unknown = true;
  spec->add_eos = true;
  OUTRIDER_TRY(const auto add_space_prefix, metadata.boolean("tokenizer.ggml.add_space_prefix"));
  spec->add_space_prefix = add_space_prefix.value_or(false);
  return {};
}

// Gemma 4: SentencePiece's form of text with merges by rank instead of scores.
Status read_ranked_sentencepiece(const GgufMetadata& metadata, TokenizerSpec* spec) {
  spec->kind = TokenizerKind::kSentencePiece;
  spec->add_bos = true;
  spec->fuse_unknown = true;
  return read_merges(metadata, spec);
}

Status read_sentencepiece(const GgufMetadata& metadata, TokenizerSpec* spec) {
  OUTRIDER_RETURN_IF_ERROR(read_scores(metadata, spec));
  spec->kind = TokenizerKind::kSentencePiece;
  spec->add_bos = true;
  OUTRIDER_TRY(const auto add_space_prefix, metadata.boolean("tokenizer.ggml.add_space_prefix"));
  spec->add_space_prefix = add_space_prefix.value_or(true);
  return {};
}

struct TokenizerModel {
  std::string_view name;  // tokenizer.ggml.model
  Status (*read)(const GgufMetadata&, TokenizerSpec*);
};

constexpr TokenizerModel kModels[] = {
    {"gpt2", read_byte_level},
    {"llama", read_sentencepiece},
    {"t5", read_unigram},
    {"gemma4", read_ranked_sentencepiece},
};

// Sets ids, and the tokens of chat templates.
Status read_special_ids(const GgufMetadata& metadata, TokenizerSpec* spec) {
  std::optional<TokenId> separator, classifier, mask;
  struct SpecialId {
    std::string_view key;
    std::optional<TokenId>* id;
    std::string_view template_name;
  };
  const SpecialId ids[] = {
      {"tokenizer.ggml.bos_token_id", &spec->bos, ""},
      {"tokenizer.ggml.eos_token_id", &spec->eos, ""},
      {"tokenizer.ggml.unknown_token_id", &spec->unknown, "unk_token"},
      {"tokenizer.ggml.padding_token_id", &spec->pad, "pad_token"},
      {"tokenizer.ggml.seperator_token_id", &separator, "sep_token"},  // the format's spelling
      {"tokenizer.ggml.cls_token_id", &classifier, "cls_token"},
      {"tokenizer.ggml.mask_token_id", &mask, "mask_token"},
  };
  for (const SpecialId& special : ids) {
    OUTRIDER_TRY(*special.id, metadata.token_id(special.key, spec->pieces.size()));
    if (!*special.id || special.template_name.empty()) continue;
    spec->template_tokens.emplace_back(special.template_name,
                                       spec->pieces[static_cast<size_t>(**special.id)]);
  }
  return {};
}

}  // namespace

Result<TokenizerSpec> gguf_tokenizer_spec(const GgufFile& file, std::string_view name) {
  const GgufMetadata metadata(file, name);
  OUTRIDER_TRY(const auto model, metadata.string("tokenizer.ggml.model"));
  if (!model) return metadata.fail("tokenizer.ggml.model is missing: the file has no tokenizer");
  const auto reader = std::ranges::find(kModels, *model, &TokenizerModel::name);
  if (reader == std::end(kModels)) {
    return metadata.fail("tokenizer model " + quote(*model) +
                         " is not supported; gpt2 (byte-level BPE), llama (SentencePiece), t5 (unigram) and "
                         "gemma4 (SentencePiece with merges) are");
  }
  TokenizerSpec spec;
  OUTRIDER_RETURN_IF_ERROR(read_pieces(metadata, &spec));
  OUTRIDER_RETURN_IF_ERROR(read_attributes(metadata, &spec));
  OUTRIDER_RETURN_IF_ERROR(reader->read(metadata, &spec));
  OUTRIDER_RETURN_IF_ERROR(read_special_ids(metadata, &spec));
  OUTRIDER_TRY(const auto add_bos, metadata.boolean("tokenizer.ggml.add_bos_token"));
  OUTRIDER_TRY(const auto add_eos, metadata.boolean("tokenizer.ggml.add_eos_token"));
  spec.add_bos = add_bos.value_or(spec.add_bos) && (spec.bos || !metadata.has("tokenizer.ggml.bos_token_id"));
  spec.add_eos = add_eos.value_or(spec.add_eos) && (spec.eos || !metadata.has("tokenizer.ggml.eos_token_id"));
  return spec;
}

Result<TokenizerSpec> read_gguf_tokenizer(const std::filesystem::path& path) {
  OUTRIDER_TRY(const MappedFile mapped, MappedFile::open(path));
  OUTRIDER_TRY(const GgufFile file, parse_gguf(mapped.bytes(), path.string()));
  return gguf_tokenizer_spec(file, path.string());
}

}  // namespace outrider
