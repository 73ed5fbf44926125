// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

namespace outrider {

std::string printable(std::string_view text) {
  constexpr size_t kShown = 80;
  constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      result += c;
    }
  }
  if (text.size() > kShown) result += "...";
  return result;
}

std::string quote(std::string_view text) { return "'" + printable(text) + "'"; }

}  // namespace outrider
