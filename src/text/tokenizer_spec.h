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
  kSentencePiece,  // Llama-2 style: pieces with scores, U+2581 for space, <0xNN> byte fallback
};

enum class TokenAttribute : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// What a tokenizer file says, whichever format it came in (tokenizer.json, or GGUF metadata). Untrusted until
// Tokenizer::create has accepted it.
struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  std::vector<std::string> pieces;             // by id, as spelled in the file (byte-level spelling kept)
  std::vector<TokenAttribute> attributes;      // by id
  std::vector<float> scores;                   // by id; kSentencePiece without merges only
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  // Pre-tokenizer of kByteLevelBpe: regular expressions applied one after the other, each splitting what the
  // previous ones left, every match and every gap becoming a piece of its own.
  std::vector<std::string> split_patterns;
  bool ignore_merges = false;       // a pre-token that is itself in the vocabulary is not merged (Llama 3)
  bool add_space_prefix = false;    // kSentencePiece: put U+2581 before the text
  bool normalize_nfc = false;       // Qwen2
  bool add_bos = false;
  bool add_eos = false;
  std::optional<TokenId> bos, eos, unknown, pad;
};

}  // namespace outrider
