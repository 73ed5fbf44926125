// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/call_object_reader.h"

#include <simdjson.h>

#include "base/white_space.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

constexpr size_t kMaxCallDepth = 64;

std::optional<std::string> decode_string(std::string_view quoted) {
  simdjson::dom::parser parser;
  std::string_view text;
  if (parser.parse(quoted.data(), quoted.size()).get(text) != simdjson::SUCCESS) return std::nullopt;
  return std::string(text);
}

}  // namespace

ReadState CallObjectReader::push(char next) {
  if (in_arguments_) return push_argument(next);
  after_ += next;
  const ReadState state = step(next);
  if (state == ReadState::kBroken && !after_.empty()) after_.pop_back();
  return state;
}

ReadState CallObjectReader::push_argument(char next) {
  const ReadState state = arguments_.push(next);
  if (state == ReadState::kBroken) return ReadState::kBroken;
  if (state == ReadState::kDone) {
    in_arguments_ = false;
    after_.clear();
    text_ += "{}";
    phase_ = Phase::kNext;
  }
  return ReadState::kReading;
}

ReadState CallObjectReader::step(char next) {
  text_ += next;
  if (in_string_) {
    const bool is_end = next == '"' && !is_escaped_;
    is_escaped_ = next == '\\' && !is_escaped_;
    if (!is_end) return ReadState::kReading;
    in_string_ = false;
    return end_string();
  }
  in_string_ = next == '"';
  // A number or a constant ends at the character after it.
  const bool in_word = phase_ == Phase::kInValue && nesting_.size() == 1;
  if (in_word && (is_json_space(next) || next == ',' || next == '}')) {
    if (end_value(text_.size() - 1) == ReadState::kBroken) return ReadState::kBroken;
  }
  return is_json_space(next) ? ReadState::kReading : push_structure(next);
}

ReadState CallObjectReader::end_string() {
  if (nesting_.size() > 1) return ReadState::kReading;
  if (phase_ == Phase::kInValue) return end_value(text_.size());
  const auto key = decode_string(std::string_view(text_).substr(string_begin_));
  if (!key) return ReadState::kBroken;
  key_ = *key;
  phase_ = Phase::kColon;
  return ReadState::kReading;
}

ReadState CallObjectReader::push_structure(char next) {
  switch (phase_) {
    case Phase::kOpen:
      nesting_ = "{";
      may_end_ = true;
      phase_ = Phase::kKey;
      return next == '{' ? ReadState::kReading : ReadState::kBroken;
    case Phase::kKey:
      if (next == '}' && may_end_) return end_call();
      string_begin_ = text_.size() - 1;
      return next == '"' ? ReadState::kReading : ReadState::kBroken;
    case Phase::kColon:
      phase_ = Phase::kValue;
      return next == ':' ? ReadState::kReading : ReadState::kBroken;
    case Phase::kValue:
      return begin_value(next);
    case Phase::kInValue:
      return push_nested(next);
    case Phase::kNext:
      return next_member(next);
  }
  return ReadState::kBroken;
}

ReadState CallObjectReader::begin_value(char next) {
  value_begin_ = text_.size() - 1;
  phase_ = Phase::kInValue;
  if (key_ == "arguments" || key_ == "parameters") {
    if (has_arguments_) return ReadState::kBroken;
    has_arguments_ = true;
    if (next == '{') {
      text_.pop_back();
      in_arguments_ = true;
      return push_argument(next);
    }
  }
  if (next == '{' || next == '[') {
    nesting_ += next;
  } else if (next == ',' || next == '}' || next == ']' || next == ':') {
    return ReadState::kBroken;
  }
  return ReadState::kReading;
}

ReadState CallObjectReader::push_nested(char next) {
  if (next == '{' || next == '[') {
    nesting_ += next;
    if (nesting_.size() > kMaxCallDepth) return ReadState::kBroken;
  } else if (next == '}' || next == ']') {
    if (nesting_.size() == 1 || nesting_.back() != (next == '}' ? '{' : '[')) return ReadState::kBroken;
    nesting_.pop_back();
    if (nesting_.size() == 1) return end_value(text_.size());
  }
  return ReadState::kReading;
}

ReadState CallObjectReader::end_value(size_t end) {
  phase_ = Phase::kNext;
  const std::string_view value = std::string_view(text_).substr(value_begin_, end - value_begin_);
  if (key_ == "arguments" || key_ == "parameters") other_arguments_ = value;
  if (key_ != "name") return ReadState::kReading;
  if (name_) return ReadState::kBroken;
  name_ = decode_string(value);
  return name_ ? ReadState::kReading : ReadState::kBroken;
}

ReadState CallObjectReader::next_member(char next) {
  if (next == '}') return end_call();
  may_end_ = false;
  phase_ = Phase::kKey;
  return next == ',' ? ReadState::kReading : ReadState::kBroken;
}

// Arguments may be absent, null or the text of an object.
ReadState CallObjectReader::end_call() {
  if (!name_ || !is_json_object(text_)) return ReadState::kBroken;
  if (!arguments_.text().empty()) return ReadState::kDone;
  const bool is_absent = !has_arguments_ || other_arguments_ == "null";
  const auto text = is_absent ? std::string("{}") : decode_string(other_arguments_);
  if (!text || !is_json_object(*text)) return ReadState::kBroken;
  for (const char byte : trimmed(*text)) {
    if (arguments_.push(byte) == ReadState::kBroken) return ReadState::kBroken;
  }
  return ReadState::kDone;
}

}  // namespace outrider
