// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <utf8proc.h>

#include <algorithm>

namespace outrider::utf8 {
namespace {

constexpr int kMaxLength = 4;

// The length that a lead byte announces; 0 for any other byte.
int announced_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// True when `byte` may follow `lead`. This excludes overlong forms, surrogates and values above U+10FFFF.
bool is_second_byte(unsigned char lead, unsigned char byte) {
  switch (lead) {
    case 0xE0:
      return byte >= 0xA0 && byte <= 0xBF;
    case 0xED:
      return byte >= 0x80 && byte <= 0x9F;
    case 0xF0:
      return byte >= 0x90 && byte <= 0xBF;
    case 0xF4:
      return byte >= 0x80 && byte <= 0x8F;
    default:
      return byte >= 0x80 && byte <= 0xBF;
  }
}

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

CodePoint decode(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  const int length = announced_length(lead);
  if (length == 0 || text.size() < static_cast<size_t>(length)) return {};
  if (length == 1) return {lead, 1};
  if (!is_second_byte(lead, static_cast<unsigned char>(text[1]))) return {};
  uint32_t value = lead & (0xFFu >> (length + 1));
  for (int i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (!is_continuation(byte)) return {};
    value = value << 6 | (byte & 0x3Fu);
  }
  return {value, length};
}

CodePoint decode_last(std::string_view text) {
  size_t start = text.size() - 1;
  while (start > 0 && is_continuation(static_cast<unsigned char>(text[start]))) --start;
  return decode(text.substr(start));
}

size_t valid_prefix(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (static_cast<unsigned char>(text[position]) < 0x80) {
      ++position;
      continue;
    }
    const CodePoint character = decode(text.substr(position));
    if (character.length == 0) break;
    position += character.length;
  }
  return position;
}

bool is_unfinished(std::string_view text) {
  if (text.empty() || text.size() >= kMaxLength) return false;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (static_cast<size_t>(announced_length(lead)) <= text.size()) return false;
  if (text.size() > 1 && !is_second_byte(lead, static_cast<unsigned char>(text[1]))) return false;
  return std::all_of(text.begin() + 1, text.end(),
                     [](char byte) { return is_continuation(static_cast<unsigned char>(byte)); });
}

void append(uint32_t code_point, std::string& out) {
  utf8proc_uint8_t bytes[kMaxLength];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // These are the joiners, and the circled and squared letters, which are symbols but alphabetic.
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
             (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  }
}

}  // namespace outrider::utf8
