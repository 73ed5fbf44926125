// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/call_object_reader.h"
#include "base/white_space.h"

#include <simdjson.h>

#include "base/white_space.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

constexpr size_t kMaxDepth = 64;

std::optional<std::string> decode_string(std::string_view quoted) {
  simdjson::dom::parser parser;
  std::string_view text;
  if (parser.parse(quoted.data(), quoted.size()).get(text) != simdjson::SUCCESS) return std::nullopt;
  return std::string(text);
}

}  // namespace

using State = CallReader::State;

State CallObjectReader::push(char next) {
  text_ += next;
  const bool was_in_string = string_.is_inside();
  string_.push(next);
  if (was_in_string) return string_.is_inside() ? State::kReading : end_string();
  // A number or a constant ends at the character after it.
  const bool in_word = phase_ == Phase::kInValue && nesting_.size() == 1;
  if (in_word && (is_json_space(next) || next == ',' || next == '}')) {
    if (end_value(text_.size() - 1) == State::kBroken) return State::kBroken;
  }
  return is_json_space(next) ? State::kReading : push_structure(next);
}

State CallObjectReader::end_string() {
  if (nesting_.size() > 1) return State::kReading;
  if (phase_ == Phase::kInValue) return end_value(text_.size());
  const auto key = decode_string(std::string_view(text_).substr(string_begin_));
  if (!key) return State::kBroken;
  key_ = *key;
  phase_ = Phase::kColon;
  return State::kReading;
}

State CallObjectReader::push_structure(char next) {
  switch (phase_) {
    case Phase::kOpen:
      nesting_ = "{";
      may_end_ = true;
      phase_ = Phase::kKey;
      return next == '{' ? State::kReading : State::kBroken;
    case Phase::kKey:
      if (next == '}' && may_end_) return State::kDone;
      string_begin_ = text_.size() - 1;
      return next == '"' ? State::kReading : State::kBroken;
    case Phase::kColon:
      phase_ = Phase::kValue;
      return next == ':' ? State::kReading : State::kBroken;
    case Phase::kValue:
      return begin_value(next);
    case Phase::kInValue:
      if (next == '{' || next == '[') {
        nesting_ += next;
        if (nesting_.size() > kMaxDepth) return State::kBroken;
      } else if (next == '}' || next == ']') {
        if (nesting_.size() == 1 || nesting_.back() != (next == '}' ? '{' : '[')) return State::kBroken;
        nesting_.pop_back();
        if (nesting_.size() == 1) return end_value(text_.size());
      }
      return State::kReading;
    case Phase::kNext:
      return next_member(next);
  }
  return State::kBroken;
}

State CallObjectReader::begin_value(char next) {
  value_begin_ = text_.size() - 1;
  phase_ = Phase::kInValue;
  if (key_ == "arguments" || key_ == "parameters") {
    if (arguments_begin_ != 0) return State::kBroken;
    arguments_begin_ = value_begin_;
  }
  if (next == '{' || next == '[') {
    nesting_ += next;
  } else if (next == ',' || next == '}' || next == ']' || next == ':') {
    return State::kBroken;
  }
  return State::kReading;
}

State CallObjectReader::end_value(size_t end) {
  phase_ = Phase::kNext;
  if (arguments_begin_ == value_begin_) arguments_end_ = end;
  if (key_ != "name") return State::kReading;
  if (name_) return State::kBroken;
  name_ = decode_string(std::string_view(text_).substr(value_begin_, end - value_begin_));
  return name_ ? State::kReading : State::kBroken;
}

State CallObjectReader::next_member(char next) {
  if (next == '}') return State::kDone;
  may_end_ = false;
  phase_ = Phase::kKey;
  return next == ',' ? State::kReading : State::kBroken;
}

std::string_view CallObjectReader::arguments() const {
  if (arguments_begin_ == 0 || text_[arguments_begin_] != '{') return {};
  const size_t end = arguments_end_ == 0 ? text_.size() : arguments_end_;
  return std::string_view(text_).substr(arguments_begin_, end - arguments_begin_);
}

std::optional<std::string> CallObjectReader::finished_arguments() const {
  if (!name_ || !is_json_object(text_)) return std::nullopt;
  if (arguments_begin_ == 0) return "{}";
  if (const std::string_view object = arguments(); !object.empty()) return std::string(object);
  const std::string_view value(text_.data() + arguments_begin_, arguments_end_ - arguments_begin_);
  if (value == "null") return "{}";
  auto text = decode_string(value);
  return text && is_json_object(*text) ? text : std::nullopt;
}

}  // namespace outrider
