// SPDX-License-Identifier: Apache-2.0
#include "server/api/request_field.h"

#include <cmath>
#include <utility>

namespace outrider {

ApiError field_error(std::string_view path, std::string_view message, std::string_view code) {
  ApiError error;
  error.param = path;
  error.message = path.empty() ? std::string(message) : std::string(path).append(": ").append(message);
  error.code = code;
  return error;
}

// The message names the path already.
ApiError RequestField::api_error(const Error& error) const {
  return {.message = error.message, .param = path()};
}

ApiResult<std::string> RequestField::string() const {
  OUTRIDER_TRY(const std::string_view text, checked(JsonField::string()));
  return std::string(text);
}

ApiResult<int64_t> RequestField::integer(int64_t min, int64_t max) const {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value().is_double()) {
    const double number = value().get_double().value_unsafe();
    const bool is_whole = std::abs(number) <= kExact && number == std::trunc(number);
    const auto whole = static_cast<int64_t>(is_whole ? number : 0);
    if (is_whole && whole >= min && whole <= max) return whole;
  }
  return checked(JsonField::integer(min, max));
}

ApiResult<std::vector<RequestField>> RequestField::items(size_t max) const {
  OUTRIDER_TRY(std::vector<JsonField> fields, checked(JsonField::items(max)));
  return std::vector<RequestField>(fields.begin(), fields.end());
}

ApiStatus RequestField::each(const std::function<ApiStatus(const RequestField&)>& visit) const {
  OUTRIDER_TRY(const simdjson::dom::array values, checked(array()));
  size_t index = 0;
  for (const simdjson::dom::element value : values)
    OUTRIDER_RETURN_IF_ERROR(visit(RequestField(element(index++, value))));
  return api_ok();
}

bool RequestField::begins_with_number() const {
  if (!is_array() || size() == 0) return false;
  return (*value().get_array().value_unsafe().begin()).is_number();
}

ApiResult<std::vector<RequestField>> RequestField::members(size_t max) const {
  OUTRIDER_TRY(std::vector<JsonField> fields, checked(JsonField::members(max)));
  return std::vector<RequestField>(fields.begin(), fields.end());
}

std::optional<RequestField> RequestField::find(std::string_view key) const {
  auto member = JsonField::find(key);
  return member ? std::optional(RequestField(*std::move(member))) : std::nullopt;
}

ApiResult<RequestField> RequestField::at(std::string_view key) const {
  if (!is_object()) return expected("an object");
  if (auto member = find(key)) return *std::move(member);
  return field_error(member_path(key), "expected a value, found none");
}

ApiResult<RequestBody> RequestBody::parse(std::string_view body, int max_depth) {
  auto document = JsonDocument::parse(body, max_depth);
  if (!document.ok()) {
    ApiError error = field_error("", document.error().message);
    if (document.error().kind == ErrorKind::kResource) {
      error.status = 503;
      error.type = "server_error";
    }
    return error;
  }
  RequestBody parsed(std::move(*document));
  if (!parsed.root().is_object()) return parsed.root().expected("a JSON object");
  if (const auto duplicate = parsed.document_.find_duplicate_key())
    return field_error(duplicate->path(), "expected every key once in an object, found it twice");
  return parsed;
}

}  // namespace outrider
