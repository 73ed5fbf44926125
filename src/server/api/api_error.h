// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// OpenAI's error object and the HTTP status of the answer that carries it.
struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message = {};             // one line: expected and found values
  std::string param = {};               // path of the invalid field: "messages[2].content"; empty: null
  std::string code = {};                // "context_length_exceeded"; empty: null
  std::optional<int> retry_after = {};  // seconds; a header, not part of the body
};

template <typename T>
using ApiResult = Result<T, ApiError>;

enum class ErrorForm : uint8_t {
  kOpenAi,     // {"error": {"message", "type", "param", "code"}}
  kAnthropic,  // {"type": "error", "error": {"type", "message"}}
  kOllama,     // {"error": message}
};
std::string error_body(const ApiError& error, ErrorForm form = ErrorForm::kOpenAi);
// A status 501: the server could answer with other options.
ApiError not_served_error(std::string_view message);
// The last event of a stream that fails: data: {"error": ...}
std::string error_event(const ApiError& error);

}  // namespace outrider
