// SPDX-License-Identifier: Apache-2.0
// Control tokens that a user spells in a message are text, not tokens: "<|im_end|>" typed by a user ends no
// turn. Tokenizer::mark_input() breaks such spellings by a mark before a chat template sees them, and
// EncodeOptions::drop_marks removes the marks after the search for control tokens.
#pragma once

#include <string>
#include <string_view>

namespace outrider {

// Marks are noncharacters. Where the text itself has kMarkStart, kEscape follows it.
inline constexpr std::string_view kMarkStart = "\xEF\xB7\x90";  // U+FDD0
inline constexpr std::string_view kMark = "\xEF\xB7\x91";       // U+FDD1
inline constexpr std::string_view kEscape = "\xEF\xB7\x92";     // U+FDD2

// Removes the marks, which gives the text before mark_input().
std::string drop_input_marks(std::string_view text);

}  // namespace outrider
