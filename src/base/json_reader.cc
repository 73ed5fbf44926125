// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include "base/quote.h"

namespace outrider {
namespace {

std::string_view type_name(simdjson::dom::element value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY:
      return "an array";
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::STRING:
      return "a string";
    case simdjson::dom::element_type::BOOL:
      return "a boolean";
    case simdjson::dom::element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

}  // namespace

Error JsonField::expected(std::string_view what) const {
  return input_error((path_.empty() ? "the file" : path_) + ": expected " + std::string(what) + ", found " +
                     std::string(type_name(value_)));
}

Error JsonField::unsupported(std::string_view what, std::string_view found,
                             std::initializer_list<std::string_view> supported) const {
  std::string names;
  for (const std::string_view name : supported) names += (names.empty() ? "" : ", ") + std::string(name);
  return input_error(path_ + ": " + std::string(what) + " " + quote(found) +
                     " is not supported; supported: " + names);
}

Result<std::string_view> JsonField::string() const {
  std::string_view text;
  if (value_.get_string().get(text) != simdjson::SUCCESS) return expected("a string");
  return text;
}

Result<bool> JsonField::boolean() const {
  bool value = false;
  if (value_.get_bool().get(value) != simdjson::SUCCESS) return expected("a boolean");
  return value;
}

Result<int64_t> JsonField::integer() const {
  int64_t value = 0;
  if (value_.get_int64().get(value) != simdjson::SUCCESS) return expected("an integer below 2^63");
  return value;
}

Result<simdjson::dom::array> JsonField::array() const {
  simdjson::dom::array array;
  if (value_.get_array().get(array) != simdjson::SUCCESS) return expected("an array");
  return array;
}

Result<simdjson::dom::object> JsonField::object() const {
  simdjson::dom::object object;
  if (value_.get_object().get(object) != simdjson::SUCCESS) return expected("an object");
  return object;
}

Result<JsonField> JsonField::at(std::string_view key) const {
  OUTRIDER_TRY(const simdjson::dom::object members, object());
  simdjson::dom::element value;
  if (members.at_key(key).get(value) != simdjson::SUCCESS) return expected("an object with " + quote(key));
  return member(key, value);
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  simdjson::dom::element value;
  if (!value_.is_object() || value_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) {
    return std::nullopt;
  }
  return member(key, value);
}

Result<bool> JsonField::boolean_at(std::string_view key, bool fallback) const {
  const auto field = find(key);
  return field ? field->boolean() : Result<bool>(fallback);
}

Result<std::string_view> JsonField::string_at(std::string_view key, std::string_view fallback) const {
  const auto field = find(key);
  return field ? field->string() : Result<std::string_view>(fallback);
}

}  // namespace outrider
