// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/http/router.h"
#include "server/http/service.h"

namespace outrider {

// What a request says before its body.
struct RequestHeader {
  std::string method;
  std::string target;
  std::optional<std::string> host;
  int hosts = 0;  // Host headers
  bool is_http_1_1 = true;
  std::string authorization;
  std::string content_type;
  std::string origin;
  std::string request_id;  // empty: none that can be repeated
};

struct Admission {
  RouteMatch match;
  uint64_t scope = 0;  // of the prefix cache
};

struct Refusal {
  ApiError error;
  std::string allow;  // methods, with 405
};

// Everything that is decided before a body is read, in this order: host, key, route, type, phase, queue.
Result<Admission, Refusal> admit(const Service& service, const RequestHeader& head);

ApiError queue_full_error(const Service& service);

// What Access-Control-Allow-Origin says to this origin; empty: nothing.
std::string allowed_origin(const ServerOptions& options, std::string_view origin);

}  // namespace outrider
