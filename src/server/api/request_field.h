// SPDX-License-Identifier: Apache-2.0
// The JSON of a request: typed access whose errors name the field, what was expected and what was found.
#pragma once

#include <simdjson.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/api/api_error.h"

namespace outrider {

using ApiStatus = ApiResult<std::monostate>;
inline ApiStatus api_ok() { return std::monostate{}; }

// A status 400 that names a field.
ApiError field_error(std::string_view path, std::string_view message, std::string_view code = "");

// A value and where it stands: "messages[2].content". Points into its RequestBody.
class RequestField {
 public:
  RequestField(simdjson::dom::element value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  bool is_null() const { return value_.is_null(); }
  bool is_string() const { return value_.is_string(); }
  bool is_array() const { return value_.is_array(); }
  bool is_object() const { return value_.is_object(); }
  bool is_bool() const { return value_.is_bool(); }
  bool is_number() const { return value_.is_number(); }

  // Errors of all: another type, or out of range.
  ApiResult<std::string> string() const;
  ApiResult<bool> boolean() const;
  ApiResult<int64_t> integer(int64_t min, int64_t max) const;
  ApiResult<double> number(double min, double max) const;
  ApiResult<std::vector<RequestField>> items(size_t max) const;           // of an array
  ApiResult<std::vector<RequestField>> members(size_t max = 1024) const;  // of an object
  size_t size() const;                                                    // of an array or object, else 0
  // The place of the text among `names`.
  ApiResult<int> one_of(std::span<const std::string_view> names) const;

  // A member that is there and not null. `find` expects this to be an object. Error of `at`: there is none.
  std::optional<RequestField> find(std::string_view key) const;
  ApiResult<RequestField> at(std::string_view key) const;

  std::string_view key() const { return key_; }  // of a member
  std::string json() const;                      // without white space

  ApiError expected(std::string_view what) const;
  ApiError error(std::string_view message, std::string_view code = "") const {
    return field_error(path_, message, code);
  }

 private:
  ApiError too_many(size_t max) const;

  simdjson::dom::element value_;
  std::string path_;
  std::string_view key_;
};

// Errors: not one JSON object in UTF-8, nested deeper than `max_depth`, or a key twice in one object.
class RequestBody {
 public:
  static ApiResult<RequestBody> parse(std::string_view body, int max_depth);
  RequestField root() const { return {root_, ""}; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

}  // namespace outrider
