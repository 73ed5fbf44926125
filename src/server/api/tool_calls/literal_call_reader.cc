// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/literal_call_reader.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/utf8.h"
#include "base/white_space.h"
#include "server/api/json_text.h"
#include "server/api/tool_calls/argument_text.h"

namespace outrider {
namespace {

constexpr size_t kMaxLiteralDepth = 64;
constexpr size_t kMaxLiteralName = 256;
constexpr size_t kMaxLiteralWord = 4096;
constexpr uint32_t kReplacementCharacter = 0xFFFD;

bool is_name_character(char c) {
  constexpr std::string_view kOthers = "_-./:";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != std::string_view::npos;
}

bool is_literal_key(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n<>=\"'(){}[],") == std::string_view::npos;
}

bool is_high(uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low(uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

// Python's escapes of one letter; 0: none.
char escaped(char letter) {
  constexpr std::string_view kLetters = "\\'\"ntrbfav";
  constexpr std::string_view kBytes = "\\'\"\n\t\r\b\f\a\v";
  const size_t place = kLetters.find(letter);
  return place == std::string_view::npos ? '\0' : kBytes[place];
}

}  // namespace

ReadState LiteralCallReader::push(char next) {
  taken_ += next;
  const ReadState state = step(next);
  if (state == ReadState::kBroken && !taken_.empty()) taken_.pop_back();
  return state;
}

ReadState LiteralCallReader::step(char next) {
  switch (phase_) {
    case Phase::kName:
      return push_name(next);
    case Phase::kKey:
      return push_key(next);
    case Phase::kKeyEnd:
      if (is_json_space(next)) return ReadState::kReading;
      return next == levels_.back().assign ? end_key() : ReadState::kBroken;
    case Phase::kValue:
      return push_value(next);
    case Phase::kQuote:
      return push_quote(next);
    case Phase::kText:
      return push_text(next);
    case Phase::kEscape:
      return push_escape(next);
    case Phase::kWord:
      return push_word(next);
    case Phase::kNext:
      return push_next(next);
  }
  return ReadState::kBroken;
}

// The character ended a value and belongs to what follows.
ReadState LiteralCallReader::step_again(char next) {
  taken_.assign(1, next);
  return step(next);
}

ReadState LiteralCallReader::push_name(char next) {
  if (next != marks_.open) {
    if (!is_name_character(next) || held_.size() >= kMaxLiteralName) return ReadState::kBroken;
    held_ += next;
    return ReadState::kReading;
  }
  name_ = std::exchange(held_, {});
  levels_.push_back({.assign = marks_.assign, .closer = marks_.close});
  phase_ = Phase::kKey;
  return ReadState::kReading;
}

ReadState LiteralCallReader::push_key(char next) {
  if (may_close_at(next)) return close();
  if (is_json_space(next) && held_.empty()) return ReadState::kReading;
  if (is_python() && levels_.size() > 1) {
    is_key_ = true;
    return push_value(next);
  }
  if (next != levels_.back().assign) {
    held_ += next;
    return held_.size() > kMaxLiteralName ? ReadState::kBroken : ReadState::kReading;
  }
  key_ = trimmed(held_);
  return is_literal_key(key_) ? end_key() : ReadState::kBroken;
}

ReadState LiteralCallReader::end_key() {
  if (!levels_.back().keys.insert(key_).second) return ReadState::kBroken;
  held_.clear();
  may_close_ = false;
  phase_ = Phase::kValue;
  return ReadState::kReading;
}

ReadState LiteralCallReader::push_value(char next) {
  if (is_json_space(next)) return ReadState::kReading;
  if (levels_.back().is_list && may_close_at(next)) return close();
  const bool is_quote = is_python() ? next == '"' || next == '\'' : next == marks_.quote.front();
  if (is_key_ && !is_quote) return ReadState::kBroken;
  if (!is_quote && (next == '[' || next == '{' || (is_python() && next == '('))) return open(next);
  held_.assign(1, next);
  phase_ = is_quote ? Phase::kQuote : Phase::kWord;
  return ReadState::kReading;
}

// Python's texts begin with one quote or three.
ReadState LiteralCallReader::push_quote(char next) {
  if (!is_python()) {
    held_ += next;
    if (held_ == marks_.quote) begin_text(held_);
    return phase_ == Phase::kText || marks_.quote.starts_with(held_) ? ReadState::kReading
                                                                     : ReadState::kBroken;
  }
  const char quote = held_.front();
  if (next == quote) {
    held_ += next;
    if (held_.size() == 3) begin_text(held_);
    return ReadState::kReading;
  }
  const bool is_empty = held_.size() == 2;
  begin_text(std::string(1, quote));
  if (!is_empty) return push_text(next);
  end_text();
  return step_again(next);
}

void LiteralCallReader::begin_text(std::string quote) {
  quote_ = std::move(quote);
  held_.clear();
  phase_ = Phase::kText;
  if (is_key_) {
    key_.clear();
    return;
  }
  begin_json();
  arguments_ += '"';
}

ReadState LiteralCallReader::push_text(char next) {
  if (is_python() && next == '\\') {
    for (const char byte : std::exchange(held_, {})) take_text(byte);
    phase_ = Phase::kEscape;
    escape_ = 0;
    return ReadState::kReading;
  }
  held_ += next;
  while (!quote_.starts_with(held_)) {
    take_text(held_.front());
    held_.erase(0, 1);
  }
  if (!is_key_) taken_ = held_;
  if (held_ == quote_) end_text();
  return ReadState::kReading;
}

ReadState LiteralCallReader::push_escape(char next) {
  if (escape_ == 0) {
    if (next == 'x' || next == 'u' || next == 'U') {
      escape_ = next;
      return ReadState::kReading;
    }
    if (const char byte = escaped(next)) {
      take_text(byte);
    } else if (next != '\n') {  // a line break after a backslash gives no text
      take_text('\\');
      take_text(next);
    }
  } else {
    if (std::isxdigit(static_cast<unsigned char>(next)) == 0) return ReadState::kBroken;
    held_ += next;
    if (held_.size() < (escape_ == 'x' ? 2U : escape_ == 'u' ? 4U : 8U)) return ReadState::kReading;
    take_code_point(static_cast<uint32_t>(std::stoul(std::exchange(held_, {}), nullptr, 16)));
  }
  phase_ = Phase::kText;
  if (!is_key_) taken_.clear();
  return ReadState::kReading;
}

// A half of a surrogate pair waits for the other one.
void LiteralCallReader::take_code_point(uint32_t code) {
  if (is_low(code) && high_ != 0) {
    code = 0x10000 + ((std::exchange(high_, 0) - 0xD800) << 10) + (code - 0xDC00);
  } else if (is_low(code) || code > 0x10FFFF) {
    code = kReplacementCharacter;
  }
  if (is_high(code)) {
    drop_half();
    high_ = code;
    return;
  }
  std::string bytes;
  utf8::append(code, bytes);
  for (const char byte : bytes) take_text(byte);
}

void LiteralCallReader::drop_half() {
  if (std::exchange(high_, 0) != 0) take_code_point(kReplacementCharacter);
}

void LiteralCallReader::take_text(char byte) {
  drop_half();
  is_key_ ? void(key_ += byte) : append_string_byte(arguments_, byte);
}

void LiteralCallReader::end_text() {
  drop_half();
  held_.clear();
  phase_ = is_key_ ? Phase::kKeyEnd : Phase::kNext;
  if (std::exchange(is_key_, false)) return;
  arguments_ += '"';
  taken_.clear();
}

ReadState LiteralCallReader::push_word(char next) {
  const bool is_end = next == ',' || next == levels_.back().closer || (is_python() && is_json_space(next));
  if (!is_end) {
    held_ += next;
    return held_.size() > kMaxLiteralWord ? ReadState::kBroken : ReadState::kReading;
  }
  const ReadState state = end_word();
  return state == ReadState::kBroken ? state : step_again(next);
}

// A word that is no constant is a text without its quotes, except in Python.
ReadState LiteralCallReader::end_word() {
  std::string json = argument_json(held_, kNumberKind | kBooleanKind | kNullKind);
  if (json.front() == '"') {
    if (is_python()) return ReadState::kBroken;
    json = argument_json(trimmed(held_), kStringKind);
  }
  begin_json();
  arguments_ += json;
  held_.clear();
  taken_.clear();
  phase_ = Phase::kNext;
  return ReadState::kReading;
}

ReadState LiteralCallReader::push_next(char next) {
  if (is_json_space(next)) return ReadState::kReading;
  if (next == levels_.back().closer) return close();
  if (next != ',') return ReadState::kBroken;
  may_close_ = true;
  phase_ = levels_.back().is_list ? Phase::kValue : Phase::kKey;
  return ReadState::kReading;
}

// The JSON before a value: a comma and its key.
void LiteralCallReader::begin_json() {
  Level& level = levels_.back();
  if (arguments_.empty()) arguments_ = "{";
  if (std::exchange(level.has_value, true)) arguments_ += ", ";
  if (level.is_list) return;
  append_json_string(arguments_, key_);
  arguments_ += ": ";
}

ReadState LiteralCallReader::open(char next) {
  if (levels_.size() == kMaxLiteralDepth) return ReadState::kBroken;
  begin_json();
  const bool is_list = next != '{';
  arguments_ += is_list ? '[' : '{';
  const char closer = next == '(' ? ')' : is_list ? ']' : '}';
  levels_.push_back({.is_list = is_list, .closer = closer});
  may_close_ = true;
  phase_ = is_list ? Phase::kValue : Phase::kKey;
  taken_.clear();
  return ReadState::kReading;
}

ReadState LiteralCallReader::close() {
  if (arguments_.empty()) arguments_ = "{";
  arguments_ += levels_.back().is_list ? ']' : '}';
  levels_.pop_back();
  held_.clear();
  taken_.clear();
  phase_ = Phase::kNext;
  return levels_.empty() ? ReadState::kDone : ReadState::kReading;
}

std::string LiteralCallReader::ending() const {
  if (arguments_.empty()) return "{}";
  const bool in_text = (phase_ == Phase::kText || phase_ == Phase::kEscape) && !is_key_;
  std::string ending = in_text ? "\"" : "";
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) ending += level->is_list ? ']' : '}';
  return ending;
}

}  // namespace outrider
