// SPDX-License-Identifier: Apache-2.0
// UTF-8 decoding and the few character classes that tokenizers need outside of regular expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace outrider::utf8 {

struct CodePoint {
  uint32_t value = 0;
  int length = 0;  // bytes; 0: no well-formed character starts here
};

// The character at the start of `text`. Surrogates, overlong forms and values above U+10FFFF are not
// well-formed.
CodePoint decode(std::string_view text);

// The last character of well-formed, non-empty `text`.
CodePoint decode_last(std::string_view text);

// The number of bytes at the start of `text` that are well-formed.
size_t valid_prefix(std::string_view text);

// True when `text` could become one well-formed character by adding bytes.
bool is_unfinished(std::string_view text);

void append(uint32_t code_point, std::string& out);

bool is_space(uint32_t code_point);  // Unicode White_Space
bool is_word(uint32_t code_point);   // \w of UTS 18: alphabetic, mark, decimal number, connector, joiner

}  // namespace outrider::utf8
