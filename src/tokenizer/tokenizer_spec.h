// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outrider/token.h"

namespace outrider {

enum class TokenizerKind {
  kByteLevelBpe,   // GPT-2 style: bytes mapped to printable code points, merges by rank
  kSentencePiece,  // Llama-2 style: U+2581 for space, <0xNN> byte fallback, merges by score or by rank
  kUnigram,        // the text of kSentencePiece, cut into the likeliest pieces
};

enum class TokenAttribute : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// The treatment of the matches of a SplitRule, in the terms of Hugging Face tokenizers. Unmatched text stays
// a separate segment, except that kMerged* and kContiguous join neighbours.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitRule {
  std::string pattern;  // regular expression in Oniguruma's syntax, which tokenizer.json uses
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;           // matches and the text between them change places
  bool on_mapped_bytes = false;  // reads GPT-2's printable code points instead of the text (Falcon's digits)

  friend bool operator==(const SplitRule&, const SplitRule&) = default;
};

enum class NormalizerKind { kNfc, kNfd, kNfkc, kNfkd, kLowercase, kTrim, kReplace, kPrepend };

// One step from the text as written to the text that is split and encoded.
struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::kNfc;
  std::string pattern = {};  // kReplace: a regular expression in Oniguruma's syntax
  std::string content = {};  // kReplace: in place of every match; kPrepend: before a text that is not empty
  bool trims_left = false, trims_right = false;  // kTrim: white space

  friend bool operator==(const NormalizerStep&, const NormalizerStep&) = default;
};

// The moment when spaces of text other than byte-level become U+2581, and the place where add_space_prefix
// adds one.
enum class SpaceRule {
  kNormalizer,       // before the search for normalized added tokens; prefix on every stretch between tokens
  kMetaspaceAlways,  // after that search; prefix on every stretch that does not begin with a space
  kMetaspaceFirst,   // after that search; prefix at the start of the text only
};

// A token that is searched for in the text before anything else. Its piece and attribute belong to its id.
struct AddedToken {
  TokenId id = 0;
  bool single_word = false;  // found only where it is not a part of a longer word
  bool lstrip = false;       // includes the white space on its left
  bool rstrip = false;
  bool normalized = false;  // searched for in the normalized text
};

// The contents of a tokenizer file, either tokenizer.json or GGUF metadata. They are untrusted until
// Tokenizer::create() has accepted them.
struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  // [ids] spelled as in the file, byte-level spelling included. An id that no token has is empty and kUnused.
  std::vector<std::string> pieces;
  std::vector<TokenAttribute> attributes;  // [ids]
  std::vector<double> scores;              // [ids], for kUnigram, and for kSentencePiece without merges
  std::vector<std::pair<std::string, std::string>> merges;  // in the order of ranks
  // Rules are applied in order, each to the segments that the previous ones left.
  std::vector<SplitRule> split_patterns;
  // Empty: every control, unknown and user-defined token, without options (GGUF has no more to say).
  std::vector<AddedToken> added_tokens;
  bool ignore_merges = false;     // a pre-token that is itself in the vocabulary is not merged (Llama 3)
  bool add_space_prefix = false;  // kByteLevelBpe: adds a space before text that does not begin with one
  SpaceRule space_rule = SpaceRule::kNormalizer;
  bool byte_fallback = true;               // not byte-level: characters without a piece become <0xNN> pieces
  bool fuse_unknown = false;               // one unknown token for a run of unknown characters
  std::vector<NormalizerStep> normalizer;  // applied in order, before spaces become U+2581
  bool add_bos = false;
  bool add_eos = false;
  std::vector<TokenId> prefix,
      suffix;  // tokens around a text beside BOS and EOS (templates of tokenizer.json)
  std::optional<TokenId> bos, eos, unknown, pad;
  // Names such as "pad_token" and spellings, for chat templates; BOS and EOS are not among them.
  std::vector<std::pair<std::string, std::string>> template_tokens;
};

}  // namespace outrider
