// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "outrider/result.h"
#include "server/http/route.h"

namespace outrider {

// Whether the route is called `name`, as in "/health", or "/models" for "/v1/models".
bool is_route(const RouteRow& row, std::string_view name);
// Error: a name that no route has.
Status check_routes(std::span<const std::string> names);

// All routes of the server.
std::span<const RouteRow> route_table();

struct RouteMatch {
  const RouteRow* row = nullptr;  // null: no such path, or not with this method
  std::string argument;           // the text that {id} matched
  std::string allowed;            // methods of this path; empty: no such path
};
// A path without /v1 means the one with it, and HEAD means GET.
RouteMatch match_route(std::string_view method, std::string_view path);

}  // namespace outrider
