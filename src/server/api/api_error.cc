// SPDX-License-Identifier: Apache-2.0
#include "server/api/api_error.h"

#include <string_view>
#include <utility>

#include "server/api/json_writer.h"

namespace outrider {
namespace {

std::string_view anthropic_type(int status) {
  constexpr std::pair<int, std::string_view> kTypes[] = {
      {401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
      {413, "request_too_large"},    {429, "rate_limit_error"}, {503, "overloaded_error"}};
  for (const auto& [known, type] : kTypes) {
    if (known == status) return type;
  }
  return status >= 500 ? "api_error" : "invalid_request_error";
}

std::string anthropic_body(const ApiError& error) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("type", "error").key("error").begin_object();
  json.member("type", anthropic_type(error.status)).member("message", error.message);
  json.end_object().end_object();
  return body;
}

}  // namespace

std::string error_body(const ApiError& error, ErrorForm form) {
  if (form == ErrorForm::kAnthropic) return anthropic_body(error);
  std::string body;
  JsonWriter json(body);
  if (form == ErrorForm::kOllama) {
    json.begin_object().member("error", error.message).end_object();
    return body;
  }
  json.begin_object().key("error").begin_object().member("message", error.message);
  json.member("type", error.type).member("param", text_or_null(error.param));
  json.member("code", text_or_null(error.code)).end_object().end_object();
  return body;
}

ApiError not_served_error(std::string_view message) {
  return {
      .status = 501, .type = "not_supported_error", .message = std::string(message), .code = "not_supported"};
}

std::string error_event(const ApiError& error) { return "data: " + error_body(error) + "\n\n"; }

}  // namespace outrider
