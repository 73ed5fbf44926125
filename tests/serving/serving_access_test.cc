// SPDX-License-Identifier: Apache-2.0
// Access to the server: hosts, keys, origins, and requests that it refuses before reading them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/router.h"
#include "tests/serving/malformed_requests.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

TEST(Server, EveryRouteButHealthWantsAKey) {
  const KeyFile keys("# two of them\n0123456789abcdef-one\n0123456789abcdef-two\n");
  TestServer server([&](ServerParts& parts) { parts.options.api_key_file = keys.path(); });
  TestClient client(server.port());
  while (client.get("/health").status != 200) std::this_thread::sleep_for(milliseconds(5));
  for (const RouteRow& row : route_table()) {
    for (const std::string key :
         {"", "Authorization: Bearer 0123456789abcdef-on\r\n", "Authorization: Basic !!\r\n"}) {
      client.send(
          fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                      "application/json\r\nContent-Length: 2\r\n{}\r\n{{}}",
                      row.method, row.pattern, key));
      const TestAnswer answer = client.read_answer();
      EXPECT_EQ(answer.status, row.is_public ? 200 : 401) << row.pattern << " " << key;
      EXPECT_EQ(answer.headers.count("www-authenticate"), answer.status == 401 ? 1u : 0u);
    }
  }
  EXPECT_EQ(client.get("/no/such/path").status, 401);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer 0123456789abcdef-two\r\n").status, 200);
  // As a browser sends it, with any name and the key as password ("x:0123456789abcdef-one").
  EXPECT_EQ(client.get("/", "Authorization: Basic eDowMTIzNDU2Nzg5YWJjZGVmLW9uZQ==\r\n").status, 200);
  keys.write("another-key-of-length\n");
  server.server().reload();
  while (client.get("/v1/models", "Authorization: Bearer another-key-of-length\r\n").status != 200) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer 0123456789abcdef-two\r\n").status, 401);
}

TEST(Server, RefusesAPublicAddressWithoutKeys) {
  ServerParts parts;
  parts.options.host = "0.0.0.0";
  parts.options.port = 0;
  const auto server = Server::listen(std::move(parts));
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("--api-key-file"), std::string::npos) << server.error().message;
}

TEST(Server, ShortKeysAreForThisMachine) {
  TestServer server([](ServerParts& parts) { parts.options.api_keys = {"sk-test"}; });
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(server.client().get("/v1/models").status, 401);
  EXPECT_EQ(server.client().get("/v1/models", "Authorization: Bearer sk-test\r\n").status, 200);
  ServerParts parts;
  parts.options.host = "0.0.0.0";
  parts.options.port = 0;
  parts.options.api_keys = {"sk-test"};
  const auto refused = Server::listen(std::move(parts));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("16 characters"), std::string::npos) << refused.error().message;
}

TEST(Server, RefusesKeysThatOthersCanRead) {
  const KeyFile keys("0123456789abcdef-one\n");
  std::filesystem::permissions(keys.path(), std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  ServerParts parts;
  parts.options.api_key_file = keys.path();
  EXPECT_FALSE(Server::listen(std::move(parts)).ok());
}

TEST(Server, KeysCancelOnlyTheirOwn) {
  const KeyFile keys("0123456789abcdef-one\n0123456789abcdef-two\n");
  TestServer server([&](ServerParts& parts) {
    with_slow_engine(parts);
    parts.options.api_key_file = keys.path();
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::string one = "Authorization: Bearer 0123456789abcdef-one\r\n",
                    two = "Authorization: Bearer 0123456789abcdef-two\r\n";
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true), one + "X-Request-Id: mine\r\n"));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  TestClient other(server.port());
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}", two).status, 404);
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}", one).status, 200);
}

struct HeadCase {
  std::string name;
  std::string request;
  int status;
};

TEST(Server, HeadsAreJudgedBeforeTheirBodies) {
  TestServer server([](ServerParts& parts) {
    parts.options.cors_origins = {"https://good.example"};
    parts.limits.body_bytes = 1000;
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<HeadCase> cases = {
      {"foreign name", "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
      {"loopback by address", "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", 200},
      {"loopback v6", "GET /v1/models HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200},
      {"no host", "GET /v1/models HTTP/1.1\r\n\r\n", 400},
      {"a probe without host", "GET /health HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
      {"unknown path", "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
      {"wrong method", "GET /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
      {"form",
       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
       "2\r\n\r\n{}",
       415},
      {"no type", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 415},
      {"too long a body",
       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
       "application/json\r\nContent-Length: 1001\r\n\r\n",
       413},
      {"preflight",
       "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://good.example\r\n\r\n", 204},
      {"preflight of others",
       "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://bad.example\r\n\r\n", 405},
  };
  for (const HeadCase& item : cases) {
    TestClient client(server.port());
    client.send(item.request);
    const TestAnswer answer = client.read_answer(std::chrono::seconds(5));
    EXPECT_EQ(answer.status, item.status) << item.name << ": " << answer.body;
    EXPECT_EQ(error_type(answer).empty(), answer.status < 400) << item.name;
  }
  TestClient client(server.port());
  EXPECT_EQ(
      client.get("/health", "Origin: https://good.example\r\n").headers.at("access-control-allow-origin"),
      "https://good.example");
  EXPECT_EQ(
      client.get("/health", "Origin: https://bad.example\r\n").headers.count("access-control-allow-origin"),
      0u);
  EXPECT_EQ(client.get("/v1/completions").headers.at("allow"), "POST");
}

TEST(Server, PreflightsAllowTheHeadersThatTheyAskFor) {
  TestServer server([](ServerParts& parts) { parts.options.cors_origins = {"https://good.example"}; });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const auto allowed = [&](const std::string& asked) {
    client.send(
        "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://good.example\r\n" +
        asked + "\r\n");
    return client.read_answer().headers["access-control-allow-headers"];
  };
  EXPECT_EQ(allowed("Access-Control-Request-Headers: authorization,x-stainless-os\r\n"),
            "authorization,x-stainless-os");
  EXPECT_EQ(allowed(""), "Authorization, Content-Type, X-Request-Id");
  EXPECT_EQ(allowed("Access-Control-Request-Headers: a;b\r\n"), "Authorization, Content-Type, X-Request-Id");
}

TEST(Server, MalformedRequestsAreErrors) {
  TestServer server([](ServerParts& parts) {
    parts.limits.header_time = milliseconds(500);  // endless requests time out soon
    parts.limits.body_gap = milliseconds(500);
    parts.limits.close_time = milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<MalformedRequest> cases = malformed_requests();
  EXPECT_GE(cases.size(), 100u);
  for (const MalformedRequest& item : cases) {
    TestClient client(server.port());
    client.send(item.bytes);
    const TestAnswer answer = client.read_answer(std::chrono::seconds(10));
    if (answer.status == 0) continue;  // the connection closed
    EXPECT_GE(answer.status, 400) << item.name;
    EXPECT_LT(answer.status, 500) << item.name;
    EXPECT_FALSE(error_type(answer).empty()) << item.name << ": " << answer.body;
    EXPECT_EQ(answer.body.find(OUTRIDER_SOURCE_DIR), std::string::npos) << item.name;
  }
  TestClient client(server.port());
  EXPECT_EQ(client.post("/v1/completions", kShort).status, 200);
}

// A request that is cut off anywhere is not answered as a valid one.
TEST(Server, CutRequestsAreNotAnswered) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  const std::string whole = post_text("/v1/completions", kShort);
  for (size_t size = 0; size < whole.size(); ++size) {
    TestClient client(server.port());
    client.send(whole.substr(0, size));
    client.half_close();
    const TestAnswer answer = client.read_answer(std::chrono::seconds(10));
    EXPECT_TRUE(answer.status == 0 || answer.status == 400) << size << ": " << answer.status;
  }
  ASSERT_TRUE(server.wait_until_free());
}

}  // namespace
}  // namespace outrider
