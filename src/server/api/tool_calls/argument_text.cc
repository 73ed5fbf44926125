// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/argument_text.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/white_space.h"

namespace outrider {
namespace {

namespace dom = simdjson::dom;

constexpr int kMaxSchemaDepth = 8;  // of nested schemas

uint8_t kind_of(const dom::element& value) {
  switch (value.type()) {
    case dom::element_type::STRING:
      return kStringKind;
    case dom::element_type::BOOL:
      return kBooleanKind;
    case dom::element_type::NULL_VALUE:
      return kNullKind;
    case dom::element_type::OBJECT:
      return kObjectKind;
    case dom::element_type::ARRAY:
      return kArrayKind;
    default:
      return kNumberKind;
  }
}

uint8_t kind_named(std::string_view name) {
  constexpr std::pair<std::string_view, uint8_t> kNames[] = {
      {"string", kStringKind}, {"integer", kNumberKind}, {"number", kNumberKind}, {"boolean", kBooleanKind},
      {"null", kNullKind},     {"object", kObjectKind},  {"array", kArrayKind}};
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
  bool is_nullable = false;
  if (schema["nullable"].get(is_nullable) == simdjson::SUCCESS && is_nullable && kinds != 0)
    kinds |= kNullKind;
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

}  // namespace

std::string_view json_constant(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"}};
  for (const auto& [word, json] : kWords) {
    if (word == text) return json;
  }
  return text;
}

void append_string_byte(std::string& out, char byte) {
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

std::string argument_json(std::string_view text, uint8_t kinds) {
  const std::string_view json = json_constant(trimmed(text));
  dom::parser parser;
  dom::element parsed;
  const bool is_json =
      !json.empty() && parser.parse(json.data(), json.size()).get(parsed) == simdjson::SUCCESS;
  if (is_json && (kinds & kind_of(parsed)) != 0 && kind_of(parsed) != kStringKind) return std::string(json);
  std::string quoted = "\"";
  for (const char byte : text) append_string_byte(quoted, byte);
  return quoted + '"';
}

uint8_t argument_kinds(const std::vector<Tool>& tools, std::string_view tool, const std::string& key) {
  const auto known =
      std::find_if(tools.begin(), tools.end(), [&](const Tool& one) { return one.name == tool; });
  dom::parser parser;
  dom::element root, schema;
  if (known == tools.end() || parser.parse(known->parameters).get(root) != simdjson::SUCCESS)
    return kStringKind;
  dom::object properties;
  const bool is_named = root["properties"].get(properties) == simdjson::SUCCESS &&
                        properties.at_key(key).get(schema) == simdjson::SUCCESS;
  if (!is_named && root["additionalProperties"].get(schema) != simdjson::SUCCESS) return kStringKind;
  const uint8_t kinds = kinds_in(root, schema, 0);
  return kinds == 0 ? kStringKind : kinds;
}

}  // namespace outrider
