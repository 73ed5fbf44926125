// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace outrider {

// The white space of JSON.
inline constexpr std::string_view kJsonSpace = " \t\r\n";

constexpr bool is_json_space(char c) { return kJsonSpace.find(c) != std::string_view::npos; }

// `text` without the white space at its ends.
constexpr std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kJsonSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kJsonSpace) - begin + 1);
}

}  // namespace outrider
