// SPDX-License-Identifier: Apache-2.0
#include "server/api/api_error.h"

#include "server/api/json_text.h"

namespace outrider {

std::string error_body(const ApiError& error) {
  const auto append_or_null = [](std::string& out, const std::string& text) {
    text.empty() ? void(out += "null") : append_json_string(out, text);
  };
  std::string body = R"({"error":{"message":)";
  append_json_string(body, error.message);
  body += R"(,"type":)";
  append_json_string(body, error.type);
  body += R"(,"param":)";
  append_or_null(body, error.param);
  body += R"(,"code":)";
  append_or_null(body, error.code);
  return body += "}}";
}

std::string error_event(const ApiError& error) { return "data: " + error_body(error) + "\n\n"; }

}  // namespace outrider
