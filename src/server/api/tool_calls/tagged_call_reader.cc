// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/tagged_call_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/white_space.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kEndParameter = "</parameter>";
constexpr std::string_view kEndLineAndParameter = "\n</parameter>";
constexpr std::string_view kEndFunction = "</function>";
constexpr size_t kMaxKey = 256;
constexpr int kMaxSchemaDepth = 8;  // of nested schemas

// JSON types, as bits.
constexpr uint8_t kString = 1, kNumber = 2, kBoolean = 4, kNull = 8, kObject = 16, kArray = 32;

uint8_t kind_of(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::STRING:
      return kString;
    case dom::element_type::BOOL:
      return kBoolean;
    case dom::element_type::NULL_VALUE:
      return kNull;
    case dom::element_type::OBJECT:
      return kObject;
    case dom::element_type::ARRAY:
      return kArray;
    default:
      return kNumber;
  }
}

uint8_t kind_named(std::string_view name) {
  constexpr std::pair<std::string_view, uint8_t> kNames[] = {
      {"string", kString}, {"integer", kNumber}, {"number", kNumber}, {"boolean", kBoolean},
      {"null", kNull},     {"object", kObject},  {"array", kArray}};
  for (const auto& [known, kind] : kNames) {
    if (known == name) return kind;
  }
  return 0;
}

// The JSON types that the schema allows for a value, as bits; 0: the schema does not say.
uint8_t kinds_in(const dom::element& root, const dom::element& schema, int depth) {
  if (depth > kMaxSchemaDepth || !schema.is_object()) return 0;
  uint8_t kinds = 0;
  std::string_view text;
  if (schema["type"].get(text) == simdjson::SUCCESS) kinds |= kind_named(text);
  if (schema["$ref"].get(text) == simdjson::SUCCESS && text.starts_with('#')) {
    dom::element target;
    if (root.at_pointer(text.substr(1)).get(target) == simdjson::SUCCESS)
      kinds |= kinds_in(root, target, depth + 1);
  }
  dom::element value;
  if (schema["const"].get(value) == simdjson::SUCCESS) kinds |= kind_of(value);
  dom::array list;
  if (schema["type"].get(list) == simdjson::SUCCESS) {
    for (const dom::element one : list) {
      if (one.get(text) == simdjson::SUCCESS) kinds |= kind_named(text);
    }
  }
  if (schema["enum"].get(list) == simdjson::SUCCESS) {
    for (const dom::element one : list) kinds |= kind_of(one);
  }
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    if (schema[keyword].get(list) != simdjson::SUCCESS) continue;
    for (const dom::element one : list) kinds |= kinds_in(root, one, depth + 1);
  }
  return kinds;
}

// Translates Python's spellings of JSON's constants.
std::string_view as_json(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [word, json] : kWords) {
    if (word == text) return json;
  }
  return text;
}

void append_value_character(std::string& out, char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  if (byte == '"' || byte == '\\') {
    out += '\\';
    out += byte;
  } else if (byte == '\n') {
    out += "\\n";
  } else if (static_cast<unsigned char>(byte) < 0x20) {
    out.append("\\u00") += kHex[byte >> 4];
    out += kHex[byte & 15];
  } else {
    out += byte;  // UTF-8 stays as it is
  }
}

}  // namespace

using State = CallReader::State;

State TaggedCallReader::push(char next) {
  held_ += next;
  switch (phase_) {
    case Phase::kName:
      return push_name();
    case Phase::kBetween:
      return push_between();
    case Phase::kKey:
      return push_key();
    case Phase::kValue:
      return push_value();
  }
  return State::kBroken;
}

State TaggedCallReader::push_name() {
  if (held_.back() != '>') return held_.size() > kMaxKey ? State::kBroken : State::kReading;
  held_.pop_back();
  name_ = trimmed(held_);
  arguments_ = "{";
  held_.clear();
  phase_ = Phase::kBetween;
  return State::kReading;
}

State TaggedCallReader::push_between() {
  std::string_view seen = held_;
  seen.remove_prefix(std::min(seen.find_first_not_of(kJsonSpace), seen.size()));
  if (seen == kEndFunction) {
    arguments_ += '}';
    return State::kDone;
  }
  if (seen == kParameter) {
    held_.clear();
    phase_ = Phase::kKey;
    return State::kReading;
  }
  const bool may_go_on = kEndFunction.starts_with(seen) || kParameter.starts_with(seen);
  return may_go_on ? State::kReading : State::kBroken;
}

State TaggedCallReader::push_key() {
  if (held_.back() != '>') return held_.size() > kMaxKey ? State::kBroken : State::kReading;
  held_.pop_back();
  const std::string key(trimmed(held_));
  if (!keys_.insert(key).second) return State::kBroken;
  if (keys_.size() > 1) arguments_ += ", ";
  append_json_string(arguments_, key);
  arguments_ += ": ";
  kinds_ = kinds_of(key);
  if (kinds_ == kString) arguments_ += '"';
  held_.clear();
  is_first_ = true;
  phase_ = Phase::kValue;
  return State::kReading;
}

// A line break after the opening tag and one before the closing tag belong to the tags.
State TaggedCallReader::push_value() {
  if (std::exchange(is_first_, false) && held_ == "\n") {
    held_.clear();
    return State::kReading;
  }
  if (held_ == kEndParameter || held_ == kEndLineAndParameter) {
    end_value();
    return State::kReading;
  }
  size_t count = 0;
  const auto may_end = [](std::string_view text) {
    return kEndParameter.starts_with(text) || kEndLineAndParameter.starts_with(text);
  };
  for (; !may_end(std::string_view(held_).substr(count)); ++count) {
    kinds_ == kString ? append_value_character(arguments_, held_[count]) : void(value_ += held_[count]);
  }
  held_.erase(0, count);
  return State::kReading;
}

void TaggedCallReader::end_value() {
  held_.clear();
  phase_ = Phase::kBetween;
  if (kinds_ == kString) {
    arguments_ += '"';
    return;
  }
  const std::string value = std::exchange(value_, {});
  const std::string_view json = as_json(trimmed(value));
  dom::parser parser;
  dom::element parsed;
  const bool is_json =
      !json.empty() && parser.parse(json.data(), json.size()).get(parsed) == simdjson::SUCCESS;
  if (is_json && (kinds_ & kind_of(parsed)) != 0 && kind_of(parsed) != kString) {
    arguments_ += json;
  } else {
    arguments_ += '"';
    for (const char byte : value) append_value_character(arguments_, byte);
    arguments_ += '"';
  }
}

// kString if the schema does not say.
uint8_t TaggedCallReader::kinds_of(const std::string& key) const {
  const auto tool =
      std::find_if(tools_->begin(), tools_->end(), [&](const Tool& one) { return one.name == name_; });
  dom::parser parser;
  dom::element root, schema;
  if (tool == tools_->end() || parser.parse(tool->parameters).get(root) != simdjson::SUCCESS) return kString;
  dom::object properties;
  const bool is_named = root["properties"].get(properties) == simdjson::SUCCESS &&
                        properties.at_key(key).get(schema) == simdjson::SUCCESS;
  if (!is_named && root["additionalProperties"].get(schema) != simdjson::SUCCESS) return kString;
  const uint8_t kinds = kinds_in(root, schema, 0);
  return kinds == 0 ? kString : kinds;
}

}  // namespace outrider
