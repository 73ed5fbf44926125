// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace outrider {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";             // U+2581, SentencePiece's space
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// True for tokens that have a meaning for the model and are no text.
inline bool is_special(TokenAttribute attribute) {
  return attribute == TokenAttribute::kControl || attribute == TokenAttribute::kUnknown;
}

// `text` with U+2581 for every U+0020.
std::string mark_spaces(std::string_view text);

// [ids] the bytes of each token of a checked spec within a text; they need not be valid UTF-8.
std::vector<std::string> bytes_of_pieces(const TokenizerSpec& spec);

}  // namespace outrider
