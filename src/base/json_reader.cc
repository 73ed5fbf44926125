// SPDX-License-Identifier: Apache-2.0
#include "base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json_numbers.h"

namespace outrider {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

std::string number_text(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value);
  return {digits, end.ptr};
}

bool has_entries(element value) { return value.is_array() || value.is_object(); }

// `field` is an array or an object. The parser's limit of depth bounds the recursion.
std::optional<JsonField> duplicate_key_in(const JsonField& field) {
  if (field.is_array()) {
    size_t index = 0;
    const simdjson::dom::array items = field.value().get_array().value_unsafe();
    for (const element item : items) {
      const size_t place = index++;
      if (!has_entries(item)) continue;
      if (auto duplicate = duplicate_key_in(field.element(place, item))) return duplicate;
    }
    return std::nullopt;
  }
  std::vector<std::pair<std::string_view, element>> members;
  const simdjson::dom::object object = field.value().get_object().value_unsafe();
  for (const auto& [key, value] : object) {
    members.emplace_back(key, value);
    if (!has_entries(value)) continue;
    if (auto duplicate = duplicate_key_in(field.member(key, value))) return duplicate;
  }
  const auto key_of = [](const auto& member) { return member.first; };
  std::ranges::sort(members, {}, key_of);
  const auto twice = std::ranges::adjacent_find(members, {}, key_of);
  return twice == members.end() ? std::nullopt : std::optional(field.member(twice->first, twice->second));
}

}  // namespace

std::string JsonField::found() const {
  switch (value_.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a string, " + quote(value_.get_string().value_unsafe());
    case element_type::DOUBLE:
      return number_text(value_.get_double().value_unsafe());
    default:
      return json();
  }
}

Error JsonField::fail(const std::string& what) const {
  return input_error(path_.empty() ? what : path_ + ": " + what);
}

Error JsonField::expected(std::string_view what) const {
  return fail("expected " + std::string(what) + ", found " + found());
}

Error JsonField::too_many(size_t max) const {
  return fail("expected at most " + std::to_string(max) + " entries, found " + std::to_string(size()));
}

Error JsonField::unsupported(std::string_view what, std::string_view found,
                             std::initializer_list<std::string_view> supported) const {
  std::string names;
  for (const std::string_view name : supported) names += (names.empty() ? "" : ", ") + std::string(name);
  return fail(std::string(what) + " " + quote(found) + " is not supported; supported: " + names);
}

size_t JsonField::size() const {
  if (value_.is_array()) return value_.get_array().value_unsafe().size();
  return value_.is_object() ? value_.get_object().value_unsafe().size() : 0;
}

std::string JsonField::json() const { return simdjson::minify(value_); }

Result<std::string_view> JsonField::string() const {
  std::string_view text;
  if (value_.get(text) != simdjson::SUCCESS) return expected("a string");
  return text;
}

Result<bool> JsonField::boolean() const {
  bool value = false;
  if (value_.get(value) != simdjson::SUCCESS) return expected("a boolean");
  return value;
}

Result<int64_t> JsonField::integer() const {
  int64_t value = 0;
  if (value_.get(value) != simdjson::SUCCESS) return expected("an integer below 2^63");
  return value;
}

Result<int64_t> JsonField::integer(int64_t min, int64_t max) const {
  int64_t value = 0;
  if (value_.get(value) == simdjson::SUCCESS && value >= min && value <= max) return value;
  return expected("an integer from " + std::to_string(min) + " to " + std::to_string(max));
}

Result<double> JsonField::number(double min, double max) const {
  double value = 0;
  if (value_.get(value) == simdjson::SUCCESS && value >= min && value <= max) return value;
  return expected("a number from " + number_text(min) + " to " + number_text(max));
}

Result<simdjson::dom::array> JsonField::array() const {
  simdjson::dom::array array;
  if (value_.get(array) != simdjson::SUCCESS) return expected("an array");
  return array;
}

Result<simdjson::dom::object> JsonField::object() const {
  simdjson::dom::object object;
  if (value_.get(object) != simdjson::SUCCESS) return expected("an object");
  return object;
}

Result<std::vector<JsonField>> JsonField::items(size_t max) const {
  OUTRIDER_TRY(const simdjson::dom::array values, array());
  if (size() > max) return too_many(max);
  std::vector<JsonField> fields;
  for (const simdjson::dom::element value : values) fields.push_back(element(fields.size(), value));
  return fields;
}

Result<std::vector<JsonField>> JsonField::members(size_t max) const {
  OUTRIDER_TRY(const simdjson::dom::object values, object());
  if (size() > max) return too_many(max);
  std::vector<JsonField> fields;
  for (const auto& [key, value] : values) fields.push_back(member(key, value));
  return fields;
}

Status JsonField::each(const std::function<Status(const JsonField&)>& visit) const {
  OUTRIDER_TRY(const simdjson::dom::array values, array());
  size_t index = 0;
  for (const simdjson::dom::element value : values) OUTRIDER_RETURN_IF_ERROR(visit(element(index++, value)));
  return {};
}

Result<int> JsonField::one_of(std::span<const std::string_view> names) const {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::string_view text; value_.get(text) == simdjson::SUCCESS && text == names[i])
      return static_cast<int>(i);
    list.append(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ").append(names[i]);
  }
  return expected(list);
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

JsonField JsonField::element(size_t index, simdjson::dom::element value) const {
  return {value, path_ + "[" + std::to_string(index) + "]"};
}

std::string JsonField::member_path(std::string_view key) const {
  return path_.empty() ? printable(key) : path_ + "." + printable(key);
}

JsonField JsonField::member(std::string_view key, simdjson::dom::element value) const {
  JsonField field(value, member_path(key));
  field.key_ = key;
  return field;
}

Result<JsonDocument> JsonDocument::parse(std::string_view text, int max_depth) {
  constexpr size_t kMinCapacity = 64;  // bytes; the parser refuses zero
  JsonDocument document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  const size_t capacity = std::max(text.size(), kMinCapacity);
  if (document.parser_->allocate(capacity, static_cast<size_t>(max_depth)) != simdjson::SUCCESS) {
    return resource_error("not enough memory to read " + std::to_string(text.size()) + " bytes of JSON");
  }
  auto error = document.parser_->parse(text.data(), text.size()).get(document.root_);
  if (error == simdjson::NUMBER_ERROR)
    error = document.parser_->parse(with_holdable_numbers(text)).get(document.root_);
  if (error == simdjson::DEPTH_ERROR)
    return input_error("not valid JSON: nested deeper than " + std::to_string(max_depth) + " levels");
  if (error != simdjson::SUCCESS)
    return input_error(std::string("not valid JSON: ") + simdjson::error_message(error));
  return document;
}

std::optional<JsonField> JsonDocument::find_duplicate_key() const {
  return has_entries(root_) ? duplicate_key_in(root()) : std::nullopt;
}

}  // namespace outrider
