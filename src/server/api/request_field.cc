// SPDX-License-Identifier: Apache-2.0
#include "server/api/request_field.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/quote.h"

namespace outrider {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

std::string number_text(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value);
  return {digits, end.ptr};
}

// What a message says was found: the type, and the value where it is short.
std::string found(element value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "the string " + quote(value.get_string().value_unsafe());
    case element_type::BOOL:
      return value.get_bool().value_unsafe() ? "true" : "false";
    case element_type::NULL_VALUE:
      return "null";
    case element_type::INT64:
      return std::to_string(value.get_int64().value_unsafe());
    case element_type::UINT64:
      return std::to_string(value.get_uint64().value_unsafe());
    case element_type::DOUBLE:
      return number_text(value.get_double().value_unsafe());
  }
  return "";
}

std::string member_path(const std::string& path, std::string_view key) {
  return path.empty() ? printable(key) : path + "." + printable(key);
}

std::string item_path(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

ApiStatus check_keys(element value, const std::string& path) {
  if (value.is_array()) {
    const simdjson::dom::array array = value.get_array().value_unsafe();
    size_t index = 0;
    for (const element item : array) {
      if (item.is_array() || item.is_object()) {
        OUTRIDER_RETURN_IF_ERROR(check_keys(item, item_path(path, index)));
      }
      ++index;
    }
    return api_ok();
  }
  const simdjson::dom::object object = value.get_object().value_unsafe();
  std::vector<std::string_view> keys;
  for (const auto& [key, item] : object) {
    keys.push_back(key);
    if (item.is_array() || item.is_object())
      OUTRIDER_RETURN_IF_ERROR(check_keys(item, member_path(path, key)));
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return api_ok();
  return field_error(member_path(path, *twice), "expected every key once in an object, found it twice");
}

}  // namespace

ApiError field_error(std::string_view path, std::string_view message, std::string_view code) {
  ApiError error;
  error.param = path;
  error.message = path.empty() ? std::string(message) : std::string(path).append(": ").append(message);
  error.code = code;
  return error;
}

ApiError RequestField::expected(std::string_view what) const {
  return error(std::string("expected ").append(what).append(", found ").append(found(value_)));
}

ApiError RequestField::too_many(size_t max) const {
  return error("expected at most " + std::to_string(max) + " entries, found " + std::to_string(size()));
}

size_t RequestField::size() const {
  if (value_.is_array()) return value_.get_array().value_unsafe().size();
  return value_.is_object() ? value_.get_object().value_unsafe().size() : 0;
}

ApiResult<std::string> RequestField::string() const {
  std::string_view text;
  if (value_.get_string().get(text) != simdjson::SUCCESS) return expected("a string");
  return std::string(text);
}

ApiResult<bool> RequestField::boolean() const {
  bool value = false;
  if (value_.get_bool().get(value) != simdjson::SUCCESS) return expected("true or false");
  return value;
}

ApiResult<int64_t> RequestField::integer(int64_t min, int64_t max) const {
  int64_t value = 0;
  if (value_.get_int64().get(value) == simdjson::SUCCESS && value >= min && value <= max) return value;
  return expected("an integer from " + std::to_string(min) + " to " + std::to_string(max));
}

ApiResult<double> RequestField::number(double min, double max) const {
  double value = 0;
  if (value_.get_double().get(value) == simdjson::SUCCESS && value >= min && value <= max) return value;
  return expected("a number from " + number_text(min) + " to " + number_text(max));
}

ApiResult<std::vector<RequestField>> RequestField::items(size_t max) const {
  simdjson::dom::array array;
  if (value_.get_array().get(array) != simdjson::SUCCESS) return expected("an array");
  if (size() > max) return too_many(max);
  std::vector<RequestField> items;
  for (const element item : array) {
    items.emplace_back(item, item_path(path_, items.size()));
  }
  return items;
}

ApiResult<std::vector<RequestField>> RequestField::members(size_t max) const {
  simdjson::dom::object object;
  if (value_.get_object().get(object) != simdjson::SUCCESS) return expected("an object");
  if (size() > max) return too_many(max);
  std::vector<RequestField> members;
  for (const auto& [key, item] : object) {
    members.emplace_back(item, member_path(path_, key)).key_ = key;
  }
  return members;
}

ApiResult<int> RequestField::one_of(std::span<const std::string_view> names) const {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::string_view text; value_.get_string().get(text) == simdjson::SUCCESS && text == names[i])
      return static_cast<int>(i);
    list.append(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ").append(names[i]);
  }
  return expected(list);
}

std::optional<RequestField> RequestField::find(std::string_view key) const {
  element value;
  if (!value_.is_object() || value_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) {
    return std::nullopt;
  }
  return RequestField(value, member_path(path_, key));
}

ApiResult<RequestField> RequestField::at(std::string_view key) const {
  if (!value_.is_object()) return expected("an object");
  if (auto member = find(key)) return *std::move(member);
  return field_error(member_path(path_, key), "expected a value, found none");
}

std::string RequestField::json() const { return simdjson::minify(value_); }

ApiResult<RequestBody> RequestBody::parse(std::string_view body, int max_depth) {
  RequestBody parsed;
  parsed.parser_ = std::make_unique<simdjson::dom::parser>();
  const auto depth = static_cast<size_t>(max_depth);
  if (parsed.parser_->allocate(std::max<size_t>(body.size(), 1), depth) != simdjson::SUCCESS) {
    ApiError error = field_error("", "not enough memory to read the request");
    error.status = 503;
    error.type = "server_error";
    return error;
  }
  const auto document = parsed.parser_->parse(body.data(), body.size());
  if (document.error() == simdjson::DEPTH_ERROR) {
    return field_error(
        "", "expected JSON nested at most " + std::to_string(max_depth) + " deep, found it deeper");
  }
  if (document.error() != simdjson::SUCCESS) {
    return field_error(
        "", std::string("expected a JSON object in UTF-8: ") + simdjson::error_message(document.error()));
  }
  parsed.root_ = document.value_unsafe();
  if (!parsed.root_.is_object()) return parsed.root().expected("a JSON object");
  OUTRIDER_RETURN_IF_ERROR(check_keys(parsed.root_, ""));
  return parsed;
}

}  // namespace outrider
