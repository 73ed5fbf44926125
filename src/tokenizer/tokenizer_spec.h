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
};

enum class TokenAttribute : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// What becomes of the matches of a SplitRule, in the terms of Hugging Face tokenizers. Whatever is not
// matched stays as it is, apart from kMerged* and kContiguous, which join neighbours.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitRule {
  std::string pattern;  // regular expression in Oniguruma's syntax, which tokenizer.json uses
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;           // what does not match is taken for the match
  bool on_mapped_bytes = false;  // sees GPT-2's printable code points instead of the text (Falcon's digits)

  friend bool operator==(const SplitRule&, const SplitRule&) = default;
};

// When the spaces of kSentencePiece text become U+2581, and where add_space_prefix puts one more.
enum class SpaceRule {
  kNormalizer,       // before normalized added tokens are looked for; prefix on every stretch between tokens
  kMetaspaceAlways,  // after that; prefix on every stretch that does not begin with a space
  kMetaspaceFirst,   // the same, at the start of the text only
};

// How a token that is looked for in the text before anything else is found; piece and kind are those of its
// id.
struct AddedToken {
  TokenId id = 0;
  bool single_word = false;  // not inside of a word
  bool lstrip = false;       // takes the white space on its left along
  bool rstrip = false;
  bool normalized = false;  // looked for in the normalized text
};

// What a tokenizer file says, whichever format it came in (tokenizer.json, or GGUF metadata). Untrusted until
// Tokenizer::create has accepted it.
struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  std::vector<std::string> pieces;         // by id, as spelled in the file (byte-level spelling kept)
  std::vector<TokenAttribute> attributes;  // by id
  std::vector<float> scores;               // by id; kSentencePiece without merges only
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  // Applied one after the other, each splitting what the previous ones left.
  std::vector<SplitRule> split_patterns;
  // Empty: every control, unknown and user-defined token, without options (GGUF says no more).
  std::vector<AddedToken> added_tokens;
  bool ignore_merges = false;     // a pre-token that is itself in the vocabulary is not merged (Llama 3)
  bool add_space_prefix = false;  // kByteLevelBpe: a space before text that has none
  SpaceRule space_rule = SpaceRule::kNormalizer;
  bool byte_fallback = true;   // kSentencePiece: characters without a piece become <0xNN> pieces
  bool fuse_unknown = false;   // one unknown token for a run of unknown characters
  bool normalize_nfc = false;  // Qwen2
  bool add_bos = false;
  bool add_eos = false;
  std::vector<TokenId> prefix, suffix;  // put around a text beside BOS and EOS (templates of tokenizer.json)
  std::optional<TokenId> bos, eos, unknown, pad;
};

}  // namespace outrider
