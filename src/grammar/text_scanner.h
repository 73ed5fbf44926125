// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace outrider {

// Reads a text character by character and tracks its position.
class TextScanner {
 public:
  // Precondition: `text` is UTF-8.
  explicit TextScanner(std::string_view text) : text_(text) {}

  bool at_end() const { return position_ >= text_.size(); }
  size_t position() const { return position_; }  // in bytes
  std::string_view rest() const { return text_.substr(position_); }
  // '\0' at the end; any byte of a longer character is not ASCII.
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  void skip(size_t bytes = 1) { position_ += bytes; }
  bool take(std::string_view expected) {
    if (!rest().starts_with(expected)) return false;
    position_ += expected.size();
    return true;
  }
  // Precondition: not at_end().
  uint32_t next() {
    const utf8::CodePoint character = utf8::decode(rest());
    position_ += character.length > 0 ? character.length : 1;
    return character.value;
  }
  // Reads exactly `digits` hexadecimal digits; nullopt, without moving, if there are fewer.
  std::optional<uint32_t> hexadecimal(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = peek(i);
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return std::nullopt;
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    skip(digits);
    return value;
  }
  // Reads a decimal number; one above `limit` is read whole and returned as limit + 1. nullopt: no digit.
  std::optional<int32_t> number(int32_t limit) {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int32_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; skip()) {
      value = value > limit / 10 + 1 ? limit + 1 : value * 10 + (peek() - '0');
      if (value > limit) value = limit + 1;
    }
    return value;
  }
  // "line 3, column 7"; columns count characters.
  std::string line_and_column() const {
    int line = 1;
    int column = 1;
    for (size_t i = 0; i < position_ && i < text_.size(); ++i) {
      if (text_[i] == '\n') {
        ++line;
        column = 1;
      } else if ((static_cast<uint8_t>(text_[i]) & 0xC0) != 0x80) {
        ++column;
      }
    }
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
  }

 private:
  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace outrider
