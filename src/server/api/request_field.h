// SPDX-License-Identifier: Apache-2.0
// The JSON of a request: base/json_reader.h with errors as ApiError, which name the field as their param.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_reader.h"
#include "server/api/api_error.h"

namespace outrider {

using ApiStatus = ApiResult<std::monostate>;
inline ApiStatus api_ok() { return std::monostate{}; }

// A status 400 that names a field.
ApiError field_error(std::string_view path, std::string_view message, std::string_view code = "");

// A value and its path: "messages[2].content". It points into its RequestBody.
class RequestField : private JsonField {
 public:
  explicit RequestField(JsonField field) : JsonField(std::move(field)) {}

  using JsonField::is_array;
  using JsonField::is_bool;
  using JsonField::is_null;
  using JsonField::is_number;
  using JsonField::is_object;
  using JsonField::is_string;
  using JsonField::json;
  using JsonField::key;
  using JsonField::path;
  using JsonField::size;

  // Typed reads, as JsonField's.
  ApiResult<std::string> string() const;
  ApiResult<bool> boolean() const { return checked(JsonField::boolean()); }
  ApiResult<int64_t> integer(int64_t min, int64_t max) const;  // also of 5.0, as some clients write it
  ApiResult<double> number(double min, double max) const { return checked(JsonField::number(min, max)); }
  ApiResult<std::vector<RequestField>> items(size_t max) const;           // of an array
  ApiResult<std::vector<RequestField>> members(size_t max = 1024) const;  // of an object
  // Calls `visit` with one item of this array after the other, without memory for all. Errors: this is no
  // array; the first error of `visit`.
  ApiStatus each(const std::function<ApiStatus(const RequestField&)>& visit) const;
  // Whether this is an array that begins with a number.
  bool begins_with_number() const;
  // The index in `names` of this string. Error: it is none of them.
  ApiResult<int> one_of(std::span<const std::string_view> names) const {
    return checked(JsonField::one_of(names));
  }

  // A member that is there and not null. Errors of `at`: this is no object, or has no such member.
  std::optional<RequestField> find(std::string_view key) const;
  ApiResult<RequestField> at(std::string_view key) const;

  ApiError expected(std::string_view what) const { return api_error(JsonField::expected(what)); }
  ApiError error(std::string_view message, std::string_view code = "") const {
    return field_error(path(), message, code);
  }

 private:
  ApiError api_error(const Error& error) const;
  template <typename T>
  ApiResult<T> checked(Result<T> value) const {
    if (!value.ok()) return api_error(value.error());
    return std::move(value).value();
  }
};

// Errors: not one JSON object in UTF-8, nested deeper than `max_depth`, or a key twice in one object; status
// 503 where memory is short.
class RequestBody {
 public:
  static ApiResult<RequestBody> parse(std::string_view body, int max_depth);
  RequestField root() const { return RequestField(document_.root()); }

 private:
  explicit RequestBody(JsonDocument document) : document_(std::move(document)) {}

  JsonDocument document_;
};

}  // namespace outrider
