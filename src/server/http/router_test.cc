// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

TEST(Router, FindsEveryRouteAndNothingElse) {
  for (const RouteRow& row : route_table()) EXPECT_EQ(match_route(row.method, row.pattern).row, &row);
  for (const char* path : {"/healthz", "/v1/health", "/ping"}) {
    ASSERT_NE(match_route("GET", path).row, nullptr) << path;
    EXPECT_TRUE(match_route("GET", path).row->is_public) << path;
  }
  EXPECT_EQ(match_route("GET", "/v1/models/org/name").argument, "org/name");
  EXPECT_EQ(match_route("POST", "/v1/requests/a-1/cancel").argument, "a-1");
  EXPECT_EQ(match_route("GET", "/v1/completions").allowed, "POST");
  EXPECT_EQ(match_route("POST", "/chat/completions").row, match_route("POST", "/v1/chat/completions").row);
  EXPECT_EQ(match_route("HEAD", "/models").row->pattern, "/v1/models");
  EXPECT_EQ(match_route("GET", "/v1/responses/a").row->pattern, "/v1/responses/{id}");
  EXPECT_EQ(match_route("DELETE", "/v1/responses/a").row->method, "DELETE");
  EXPECT_EQ(match_route("POST", "/v1/responses/a").allowed, "DELETE, GET");
  EXPECT_EQ(match_route("GET", "/v1/responses/a/input_items").row->pattern, "/v1/responses/{id}/input_items");
  EXPECT_EQ(match_route("GET", "/v1/responses/a/input_items").argument, "a");
  for (const char* path :
       {"", "//", "/v1", "/v1/models/", "/v1/requests//cancel", "/v1/requests/a/b/cancel", "/health/"}) {
    const RouteMatch match = match_route("GET", path);
    EXPECT_EQ(match.row, nullptr) << path;
    EXPECT_EQ(match.allowed, "") << path;
  }
}

TEST(Router, KnowsRoutesByTheirNames) {
  const std::vector<std::string> known = {"/health", "/metrics", "/models", "/v1/models"};
  EXPECT_TRUE(check_routes(known).ok());
  for (const std::string name : {"", "health", "/nothing", "/v1"})
    EXPECT_FALSE(check_routes(std::vector{name}).ok()) << name;
}

}  // namespace
}  // namespace outrider
