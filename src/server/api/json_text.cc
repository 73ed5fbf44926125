// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_text.h"

#include <simdjson.h>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

void append_escaped(std::string& out, char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += {kHex[static_cast<unsigned char>(byte) >> 4], kHex[byte & 15]};
  }
}

bool needs_escape(char byte) {
  return static_cast<unsigned char>(byte) < 0x20 || byte == '"' || byte == '\\' || byte == 0x7F;
}

void append_valid(std::string& out, std::string_view text) {
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!needs_escape(text[i])) continue;
    out += text.substr(plain, i - plain);
    append_escaped(out, text[i]);
    plain = i + 1;
  }
  out += text.substr(plain);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t valid = utf8::valid_prefix(text);
    append_valid(out, text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += kReplacement;
    text.remove_prefix(1);
  }
  out += '"';
}

bool is_json_object(std::string_view text) {
  simdjson::dom::parser parser;
  const auto document = parser.parse(text.data(), text.size());
  return document.error() == simdjson::SUCCESS && document.value_unsafe().is_object();
}

}  // namespace outrider
