// SPDX-License-Identifier: Apache-2.0
// The server over real sockets: answers, streams, connections.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

TEST(Server, AnswersAndKeepsTheConnection) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.get("/health").body, R"({"status":"ok"})");
  const TestAnswer models = client.get("/v1/models");
  EXPECT_EQ(models.headers.at("content-type"), "application/json");
  EXPECT_EQ(Json::parse(models.body)["data"][0]["id"], "tiny");
  EXPECT_EQ(client.get("/v1/models/tiny").status, 200);
  const TestAnswer unknown = client.get("/v1/models/..%2f..%2fetc");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(Json::parse(unknown.body)["error"]["code"], "model_not_found");
  EXPECT_EQ(client.get("/version").status, 200);
  EXPECT_EQ(client.get("/stats").status, 200);
  EXPECT_TRUE(client.get("/").body.starts_with("<!doctype html"));
  const TestAnswer first = client.post("/v1/completions", kShort);
  const TestAnswer second = client.post("/v1/completions", kShort);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(text_of(first), text_of(second));
}

TEST(Server, StreamsWhatItAnswersWhole) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string whole = text_of(client.post("/v1/completions", long_call(false, 60)));
  ASSERT_FALSE(whole.empty());
  const TestAnswer stream = client.post("/v1/completions", long_call(true, 60));
  EXPECT_EQ(stream.headers.at("x-accel-buffering"), "no");
  EXPECT_TRUE(stream.is_whole);
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n")) << stream.body;
  EXPECT_EQ(streamed_text(stream.body), whole);
  EXPECT_EQ(client.get("/health").status, 200);  // the connection stays open
}

TEST(Server, OlderClientsGetAStreamThatEndsByClosing) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  const std::string body = long_call(true, 20);
  client.send(fmt::format(
      "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body));
  const auto all = client.receive_until("data: [DONE]\n\n", std::chrono::seconds(20));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(client.is_closed(std::chrono::seconds(5)));
}

TEST(Server, RepeatsRequestIdsThatAreFit) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  EXPECT_EQ(client.get("/health", "X-Request-Id: my-id.1\r\n").headers.at("x-request-id"), "my-id.1");
  const std::string made = client.get("/health", "X-Request-Id: no good\r\n").headers.at("x-request-id");
  EXPECT_EQ(made.size(), 32u);
  EXPECT_NE(client.get("/health").headers.at("x-request-id"), made);
}

TEST(Server, RequestsMayComeBeforeAnAnswerIsDone) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true, 30)) + post_text("/v1/completions", kShort) +
              "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.read_answer().body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().body, R"({"status":"ok"})");
}

TEST(Server, AnswersExpectations) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(
      fmt::format("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                  "application/json\r\nContent-Length: {}\r\n"
                  "Expect: 100-continue\r\n\r\n",
                  kShort.size()));
  ASSERT_TRUE(client.receive_until("100 Continue\r\n\r\n", std::chrono::seconds(5)));
  client.send(kShort);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(Server, ACallEndsWithItsClient) {
  TestServer server(with_slow_engine);
  ASSERT_TRUE(server.wait_until_ready());
  for (const bool streams : {true, false}) {
    const double before = server.metric("outrider:disconnected_requests_total");
    TestClient client(server.port());
    client.send(post_text("/v1/completions", long_call(streams)));
    ASSERT_TRUE(server.wait_until_busy());
    client.close();
    ASSERT_TRUE(server.wait_until_free());
    EXPECT_EQ(server.metric("outrider:disconnected_requests_total"), before + 1) << streams;
  }
  EXPECT_EQ(server.metric("vllm:request_success_total", "abort"), 2);
}

TEST(Server, CancelsById) {
  TestServer server(with_slow_engine);
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", long_call(true), "X-Request-Id: mine\r\n"));
  ASSERT_TRUE(client.receive_until("data: ", std::chrono::seconds(10)));
  TestClient other(server.port());
  EXPECT_EQ(other.post("/v1/requests/another/cancel", "{}").status, 404);
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}").status, 200);
  EXPECT_TRUE(client.receive_until("data: [DONE]", std::chrono::seconds(10)));
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(other.post("/v1/requests/mine/cancel", "{}").status, 404);
}

}  // namespace
}  // namespace outrider
