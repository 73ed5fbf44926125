// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/http/route.h"

namespace outrider {

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
