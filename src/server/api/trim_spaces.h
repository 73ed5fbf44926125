// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace outrider {

inline bool is_white_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// `text` without the white space at its ends.
inline std::string_view trim_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

}  // namespace outrider
