// SPDX-License-Identifier: Apache-2.0
#include "text/quoted.h"

#include "text/utf8.h"

namespace outrider {

std::string one_line(std::string_view text) {
  constexpr size_t kMaxBytes = 80;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    if (out.size() >= kMaxBytes) return out.append("...");
    const utf8::CodePoint character = utf8::decode(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (character.length == 0 || byte < 0x20 || byte == 0x7F) {
      out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 0xF]);
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, character.length));
      text.remove_prefix(character.length);
    }
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  return std::string(1, '"').append(one_line(text)).append("\"");
}

}  // namespace outrider
