// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/http/router.h"
#include "server/http/service.h"
#include "server/telemetry/trace_context.h"

namespace outrider {

// The header fields of a request that the server reads.
struct RequestHeader {
  std::string method;
  std::string target;
  std::optional<std::string> host;
  int hosts = 0;  // number of Host headers
  bool is_http_1_1 = true;
  std::string authorization;
  std::string api_key;   // Anthropic's header for a key
  std::string of_fleet;  // FleetKey::kHeader
  std::string content_type;
  std::string content_encoding;  // in lower case
  std::string origin;
  std::string preflight_headers;  // the headers that a preflight asks for
  std::string request_id;         // empty: none, or one that is_request_id() rejects
  std::optional<TraceContext> trace;
  std::string forwarded_for;  // the client, as a program on the other end of a UNIX socket tells it
};

struct Admission {
  RouteMatch match;
  uint64_t scope = 0;          // Request::cache_scope
  std::string key_name = {};   // empty: the server has no keys, or the route asks for none
  bool is_background = false;  // a line of a batch, whose limits the server of the fleet has checked
};

struct Refusal {
  ApiError error;
  std::string allow;  // methods of the path, for status 405
};

// Checks a request before its body is read, in this order: host, key, route, content type, phase, queue. Why
// it is refused; nullopt: it is admitted. Either way `admission` tells what is known of the request.
std::optional<Refusal> admit(const Service& service, const RequestHeader& header, Admission& admission);

// The path of a request target without --root-path. nullopt: as of request_path().
std::optional<std::string> served_path(const ServerOptions& options, std::string_view target);

ApiError queue_full_error(const Service& service);
// The limits on every request.
ApiLimits api_limits(const Service& service);
// Why a key, by its scope, may not have `sequences` more at a time; nullopt: it may.
std::optional<ApiError> key_crowd(const Service& service, uint64_t scope, int sequences);

// The value of Access-Control-Allow-Headers for a preflight: the headers it asks for, since the headers of an
// SDK are not known beforehand; a usual list if it asks for none or for no valid names.
std::string allowed_headers(const RequestHeader& header);

// The value of Access-Control-Allow-Origin for this origin; empty: no such header.
std::string allowed_origin(const ServerOptions& options, std::string_view origin);

}  // namespace outrider
