// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/json_object_text.h"

#include <simdjson.h>

#include "base/white_space.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

constexpr size_t kMaxJsonDepth = 64;
constexpr size_t kMaxJsonWord = 64;  // characters of a number or a constant

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Whether the text is a number in range, true, false or null.
bool is_json_word(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
}

}  // namespace

ReadState JsonObjectText::push(char next) {
  if (phase_ == Phase::kString) return push_string(next);
  if (phase_ == Phase::kWord) {
    const bool is_end = is_json_space(next) || next == ',' || next == '}' || next == ']';
    if (is_end && end_word() == ReadState::kBroken) return ReadState::kBroken;
    if (!is_end) {
      if (held_.size() - word_ >= kMaxJsonWord) return ReadState::kBroken;
      held_ += next;
      return ReadState::kReading;
    }
  }
  if (is_json_space(next)) {
    held_ += next;
    return ReadState::kReading;
  }
  return push_structure(next);
}

// Everything that is held becomes a part of the text.
ReadState JsonObjectText::keep() {
  text_ += held_;
  held_.clear();
  return ReadState::kReading;
}

ReadState JsonObjectText::push_string(char next) {
  if (escape_ > 0) return push_escape(next);
  if (next == '\\') {
    held_ += next;
    escape_ = 1;
    return ReadState::kReading;
  }
  if (is_pair_open_) return ReadState::kBroken;
  if (next == '"') {
    held_ += next;
    phase_ = is_key_ ? Phase::kColon : Phase::kNext;
    awaits_value_ = is_key_;
    return keep();
  }
  if (static_cast<unsigned char>(next) < 0x20) {  // a strict reader would refuse it
    std::string quoted;
    append_json_string(quoted, std::string_view(&next, 1));
    held_ += quoted.substr(1, quoted.size() - 2);
  } else {
    held_ += next;
  }
  return keep();
}

// `escape_` characters of the escape came before this one: a backslash, perhaps u and digits.
ReadState JsonObjectText::push_escape(char next) {
  constexpr std::string_view kSimple = "\"\\/bfnrt";
  if (escape_ == 1 && next != 'u') {
    if (is_pair_open_ || kSimple.find(next) == std::string_view::npos) return ReadState::kBroken;
    escape_ = 0;
    held_ += next;
    return keep();
  }
  if (escape_ > 1 && !is_hex(next)) return ReadState::kBroken;
  constexpr size_t kUnit = 6;  // characters of an escape with digits
  if (escape_ + 1 == kUnit) {
    const unsigned long unit = std::stoul(held_.substr(held_.size() - 3) + next, nullptr, 16);
    const bool is_second = unit >= 0xDC00 && unit < 0xE000;
    if (is_second != is_pair_open_) return ReadState::kBroken;
    is_pair_open_ = unit >= 0xD800 && unit < 0xDC00;
  }
  held_ += next;
  if (++escape_ < kUnit) return ReadState::kReading;
  escape_ = 0;
  return is_pair_open_ ? ReadState::kReading : keep();
}

ReadState JsonObjectText::push_structure(char next) {
  switch (phase_) {
    case Phase::kOpen:
      if (next != '{') return ReadState::kBroken;
      held_ += next;
      nesting_ = "{";
      phase_ = Phase::kFirstKey;
      return keep();
    case Phase::kFirstKey:
      return next == '}' ? close(next) : begin_key(next);
    case Phase::kKey:
      return begin_key(next);
    case Phase::kColon:
      if (next != ':') return ReadState::kBroken;
      held_ += next;
      phase_ = Phase::kValue;
      return ReadState::kReading;
    case Phase::kFirstItem:
      return next == ']' ? close(next) : begin_value(next);
    case Phase::kValue:
      return begin_value(next);
    case Phase::kNext:
      return push_next(next);
    case Phase::kString:
    case Phase::kWord:
      break;
  }
  return ReadState::kBroken;
}

ReadState JsonObjectText::begin_key(char next) {
  if (next != '"') return ReadState::kBroken;
  held_ += next;
  phase_ = Phase::kString;
  is_key_ = true;
  return keep();
}

ReadState JsonObjectText::begin_value(char next) {
  if (next == ',' || next == ':' || next == '}' || next == ']') return ReadState::kBroken;
  const bool is_open = next == '{' || next == '[';
  if (is_open && nesting_.size() == kMaxJsonDepth) return ReadState::kBroken;
  held_ += next;
  if (next != '"' && !is_open) {
    phase_ = Phase::kWord;
    word_ = held_.size() - 1;
    return ReadState::kReading;
  }
  awaits_value_ = false;
  is_key_ = false;
  phase_ = next == '"' ? Phase::kString : next == '{' ? Phase::kFirstKey : Phase::kFirstItem;
  if (is_open) nesting_ += next;
  return keep();
}

ReadState JsonObjectText::end_word() {
  if (!is_json_word(std::string_view(held_).substr(word_))) return ReadState::kBroken;
  awaits_value_ = false;
  phase_ = Phase::kNext;
  return keep();
}

ReadState JsonObjectText::push_next(char next) {
  if (next == '}' || next == ']') return close(next);
  if (next != ',') return ReadState::kBroken;
  held_ += next;
  phase_ = in_object() ? Phase::kKey : Phase::kValue;
  return ReadState::kReading;
}

ReadState JsonObjectText::close(char next) {
  if (in_object() != (next == '}')) return ReadState::kBroken;
  held_ += next;
  keep();
  nesting_.pop_back();
  phase_ = Phase::kNext;
  return nesting_.empty() ? ReadState::kDone : ReadState::kReading;
}

std::string JsonObjectText::ending() const {
  if (text_.empty()) return "{}";
  std::string ending;
  const bool in_string = phase_ == Phase::kString;
  if (in_string) ending += '"';
  if (awaits_value_ || (in_string && is_key_)) ending += ": null";
  for (size_t i = nesting_.size(); i > 0; --i) ending += nesting_[i - 1] == '{' ? '}' : ']';
  return ending;
}

}  // namespace outrider
