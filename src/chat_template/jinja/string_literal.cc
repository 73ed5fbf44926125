// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/string_literal.h"

#include <utf8proc.h>

#include <charconv>

namespace outrider::jinja {

namespace {

constexpr std::string_view kEscapes = "\\'\"abfnrtv";
constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";

Status append_code_point(std::string& out, uint32_t point) {
  if (!utf8proc_codepoint_valid(static_cast<utf8proc_int32_t>(point))) {
    return input_error("an escape in a string names no character");
  }
  utf8proc_uint8_t encoded[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), encoded);
  out.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(size));
  return {};
}

// Reads exactly `digits` hexadecimal digits.
Result<uint32_t> parse_hex(std::string_view text, size_t digits) {
  uint32_t value = 0;
  const std::string_view field = text.substr(0, digits);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 16);
  if (field.size() == digits && error == std::errc() && end == field.data() + digits) return value;
  return input_error("expected " + std::to_string(digits) + " hexadecimal digits in the escape of a string");
}

// Reads one escape. `text` starts after the backslash and is moved past the escape.
Status append_escape(std::string& out, std::string_view& text) {
  const char c = text.front();
  text.remove_prefix(1);
  if (c == '\n') return {};
  if (const size_t place = kEscapes.find(c); place != std::string_view::npos) {
    out += kMeanings[place];
    return {};
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    OUTRIDER_TRY(const uint32_t point, parse_hex(text, digits));
    text.remove_prefix(digits);
    return append_code_point(out, point);
  }
  if (c >= '0' && c <= '7') {
    uint32_t point = static_cast<uint32_t>(c - '0');
    for (int i = 1; i < 3 && !text.empty() && text.front() >= '0' && text.front() <= '7'; ++i) {
      point = point * 8 + static_cast<uint32_t>(text.front() - '0');
      text.remove_prefix(1);
    }
    return append_code_point(out, point);
  }
  out += '\\';
  out += c;
  return {};
}

}  // namespace

Result<std::string> unescape_string(std::string_view body) {
  std::string out;
  while (!body.empty()) {
    const size_t backslash = body.find('\\');
    out += body.substr(0, backslash);
    if (backslash == std::string_view::npos) break;
    body.remove_prefix(backslash + 1);
    if (body.empty()) return input_error("a string ends with a lone backslash");
    OUTRIDER_RETURN_IF_ERROR(append_escape(out, body));
  }
  return out;
}

}  // namespace outrider::jinja
