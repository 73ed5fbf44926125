// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/tokenizer.h"

namespace outrider {

// Text as it is, without tokens around it or in it.
inline constexpr EncodeOptions kPlainText = {.add_special = false, .parse_special = false};

// Whether the token is a single byte, "<0x41>", which a tokenizer of characters uses only for characters that
// it does not have.
inline bool is_byte_token(const Tokenizer& tokenizer, TokenId token) {
  constexpr std::string_view kShape = "<0x41>";
  const std::string_view piece = tokenizer.token_piece(token);
  return piece.size() == kShape.size() && piece.starts_with("<0x") && piece.ends_with('>') &&
         tokenizer.token_bytes(token).size() == 1;
}

// Whether the tokenizer puts a space before every text.
inline bool puts_space(const Tokenizer& tokenizer) {
  const std::vector<TokenId> letter = tokenizer.encode("a", kPlainText);
  return !letter.empty() && tokenizer.token_bytes(letter.front()).starts_with(' ');
}

}  // namespace outrider
