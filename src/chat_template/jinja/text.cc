// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>

namespace outrider::jinja {

namespace {

struct Decoded {
  int32_t code_point = -1;
  size_t bytes = 1;
};

Decoded decode_first(std::string_view text) {
  utf8proc_int32_t code_point = -1;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t used =
      utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &code_point);
  if (used <= 0) return {};
  return {code_point, static_cast<size_t>(used)};
}

void append_mapped(std::string& out, std::string_view character, int32_t (*map)(int32_t)) {
  const int32_t point = code_point(character);
  if (point < 0) {
    out += character;
    return;
  }
  utf8proc_uint8_t encoded[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(map(point), encoded);
  out.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(size));
}

std::string map_characters(std::string_view text, int32_t (*map)(int32_t)) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view character : split_characters(text)) append_mapped(out, character, map);
  return out;
}

bool is_line_break(int32_t point) {
  return (point >= 0x0A && point <= 0x0D) || (point >= 0x1C && point <= 0x1E) || point == 0x85 ||
         point == 0x2028 || point == 0x2029;
}

}  // namespace

std::vector<std::string_view> split_characters(std::string_view text) {
  std::vector<std::string_view> characters;
  characters.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = decode_first(text).bytes;
    characters.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return characters;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(decode_first(text).bytes);
  return count;
}

int32_t code_point(std::string_view character) { return decode_first(character).code_point; }

bool is_whitespace(int32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 ||
         point == 0xA0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 ||
         point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
}

std::string_view strip(std::string_view text, StripSide side, std::optional<std::string_view> characters) {
  std::vector<std::string_view> stripped_set;
  if (characters) stripped_set = split_characters(*characters);
  const auto is_stripped = [&](std::string_view character) {
    if (!characters) return is_whitespace(code_point(character));
    return std::find(stripped_set.begin(), stripped_set.end(), character) != stripped_set.end();
  };
  if (side != StripSide::kRight) {
    while (!text.empty()) {
      const std::string_view first = text.substr(0, decode_first(text).bytes);
      if (!is_stripped(first)) break;
      text.remove_prefix(first.size());
    }
  }
  if (side != StripSide::kLeft) {
    while (!text.empty()) {
      size_t start = text.size() - 1;
      while (start > 0 && text.size() - start < 4 && (text[start] & 0xC0) == 0x80) --start;
      if (decode_first(text.substr(start)).bytes != text.size() - start) start = text.size() - 1;
      if (!is_stripped(text.substr(start))) break;
      text = text.substr(0, start);
    }
  }
  return text;
}

std::string to_upper(std::string_view text) {
  // This is the one common letter whose upper case has two letters; utf8proc maps one to one.
  return map_characters(replace(text, "ß", "SS", -1), utf8proc_toupper);
}

std::string to_lower(std::string_view text) { return map_characters(text, utf8proc_tolower); }

std::string capitalize(std::string_view text) {
  std::string out;
  for (std::string_view character : split_characters(text)) {
    append_mapped(out, character, out.empty() ? utf8proc_totitle : utf8proc_tolower);
  }
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  bool inside_word = false;
  for (std::string_view character : split_characters(text)) {
    append_mapped(out, character, inside_word ? utf8proc_tolower : utf8proc_totitle);
    inside_word = is_letter(code_point(character));
  }
  return out;
}

bool is_letter(int32_t point) {
  const utf8proc_category_t category = utf8proc_category(point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(int32_t point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_ND; }

bool is_upper(int32_t point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_LU; }

bool is_lower(int32_t point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_LL; }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const Decoded decoded = decode_first(text.substr(at));
    if (!is_line_break(decoded.code_point)) {
      at += decoded.bytes;
      continue;
    }
    lines.push_back(text.substr(start, at - start));
    const bool is_crlf = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    at += is_crlf ? 2 : decoded.bytes;
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t limit) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view text, std::string_view separator,
                                               int64_t limit) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_whitespace(std::string_view text, int64_t limit) {
  std::vector<std::string_view> parts;
  text = strip(text, StripSide::kLeft);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      const Decoded decoded = decode_first(text.substr(end));
      if (is_whitespace(decoded.code_point)) break;
      end += decoded.bytes;
    }
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), StripSide::kLeft);
  }
  return parts;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t limit) {
  std::string out;
  int64_t replaced = 0;
  const auto may_replace = [&] { return limit < 0 || replaced < limit; };
  if (from.empty()) {
    for (std::string_view character : split_characters(text)) {
      if (may_replace()) out += to, ++replaced;
      out += character;
    }
    if (may_replace()) out += to;
    return out;
  }
  while (may_replace()) {
    const size_t at = text.find(from);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
    ++replaced;
  }
  return out += text;
}

size_t replaced_size(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return text.size() + (text.size() + 1) * to.size();
  size_t matches = 0;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, at + from.size()))
    ++matches;
  return text.size() - matches * from.size() + matches * to.size();
}

std::string hex_digits(uint32_t value, int digits) {
  std::string out(static_cast<size_t>(digits), '0');
  for (size_t i = out.size(); i-- > 0; value /= 16) out[i] = "0123456789abcdef"[value % 16];
  return out;
}

}  // namespace outrider::jinja
