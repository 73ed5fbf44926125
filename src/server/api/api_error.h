// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "outrider/result.h"

namespace outrider {

// OpenAI's error object, with the HTTP status it goes out with.
struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message = {};             // one line: what was expected, what was found
  std::string param = {};               // the field at fault: "messages[2].content"; empty: null
  std::string code = {};                // "context_length_exceeded"; empty: null
  std::optional<int> retry_after = {};  // seconds; a header, not part of the body
};

template <typename T>
using ApiResult = Result<T, ApiError>;

// {"error": {...}}
std::string error_body(const ApiError& error);

}  // namespace outrider
