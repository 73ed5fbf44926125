// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/api/api_error.h"

namespace outrider {

// A whole answer, without the headers that every answer has.
struct Reply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string error = {};  // code or message for the log
};

inline Reply error_reply(const ApiError& error, ErrorForm form = ErrorForm::kOpenAi) {
  Reply reply{.status = error.status,
              .body = error_body(error, form),
              .error = error.code.empty() ? error.message : error.code};
  if (error.retry_after) reply.headers.emplace_back("Retry-After", std::to_string(*error.retry_after));
  return reply;
}

}  // namespace outrider
