// SPDX-License-Identifier: Apache-2.0
// Clients that are slow to send, slow to read, silent or too many.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

TEST(Server, SlowHeadersAndBodiesAreCutOff) {
  TestServer server([](ServerParts& parts) {
    parts.limits.header_time = milliseconds(200);
    parts.limits.body_gap = milliseconds(200);
    parts.limits.idle_time = milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient silent(server.port()), head(server.port()), body(server.port());
  head.send("GET /health HT");
  body.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "10\r\n\r\n{");
  EXPECT_TRUE(silent.is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(head.read_answer(std::chrono::seconds(5)).status, 408);
  EXPECT_EQ(body.read_answer(std::chrono::seconds(5)).status, 408);
  TestClient idle(server.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  EXPECT_TRUE(idle.is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(server.metric("outrider:dropped_connections_total", "slow_body"), 1);
}

void with_small_buffers(ServerParts& parts) {
  parts.limits.stream_bytes = 100;
  parts.limits.send_buffer_bytes = 1;  // the system raises this to its minimum
}

TEST(Server, SlowReadersMissNothing) {
  TestServer server(with_small_buffers);
  ASSERT_TRUE(server.wait_until_ready());
  const std::string whole = text_of(TestClient(server.port()).post("/v1/completions", long_call(false)));
  TestClient slow(server.port(), "127.0.0.1", 1);
  slow.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(server.wait_until_free());  // all tokens are generated, few were read
  const TestAnswer answer = slow.read_answer();
  EXPECT_TRUE(answer.is_whole);
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(streamed_text(answer.body), whole);
  const auto events = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n') / 2; };
  EXPECT_LT(events(answer.body), 150);  // fewer than the 200 steps, since waiting deltas were merged
}

TEST(Server, ReadersThatStallAreDropped) {
  TestServer server([](ServerParts& parts) {
    with_small_buffers(parts);
    parts.limits.write_stall = milliseconds(300);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient stalled(server.port(), "127.0.0.1", 1);
  stalled.send(post_text("/v1/completions",
                         R"({"prompt": "hello", "max_tokens": 200, "ignore_eos": true, "stream": true,
                                               "n": 4, "logprobs": 5})"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (server.metric("outrider:dropped_connections_total", "slow_reader") == 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(server.metric("outrider:dropped_connections_total", "slow_reader"), 1);
  EXPECT_TRUE(server.wait_until_free());
}

// The write fails before the watch reads the reset: on Linux, an event completes writes first.
TEST(Server, ResetsWhileAStreamIsWrittenAreDisconnects) {
  TestServer server([](ServerParts& parts) {
    with_small_buffers(parts);
    with_slow_engine(parts);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port(), "127.0.0.1", 1);
  client.send(post_text("/v1/completions",
                        R"({"prompt": "hello", "max_tokens": 200, "ignore_eos": true, "stream": true,
                            "n": 4, "logprobs": 5})"));
  ASSERT_TRUE(server.wait_until_busy());
  std::this_thread::sleep_for(milliseconds(200));  // the buffers are full, the call goes on
  client.abort();
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(server.metric("outrider:disconnected_requests_total"), 1);
}

TEST(Server, PingsSilentStreams) {
  TestServer server([](ServerParts& parts) {
    with_narrow_engine(parts);
    parts.limits.ping_interval = milliseconds(30);
  });
  ASSERT_TRUE(server.wait_until_ready());
  TestClient busy(server.port()), waiting(server.port());
  busy.send(post_text("/v1/completions", long_call(true)));
  ASSERT_TRUE(busy.receive_until("data: ", std::chrono::seconds(10)));
  waiting.send(post_text("/v1/completions", long_call(true, 4)));
  EXPECT_TRUE(waiting.receive_until(": ping\n\n", std::chrono::seconds(10)));
}

TEST(Server, KeepsConnectionsWithinTheirLimits) {
  TestServer server([](ServerParts& parts) { parts.options.max_connections_per_address = 3; });
  ASSERT_TRUE(server.wait_until_ready());
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port(), "127.0.0.2");
    EXPECT_EQ(clients.back().get("/health").status, 200);
  }
  EXPECT_TRUE(TestClient(server.port(), "127.0.0.2").is_closed(std::chrono::seconds(5)));
  EXPECT_EQ(TestClient(server.port(), "127.0.0.3").get("/health").status, 200);
  clients.pop_back();
  bool is_back = false;
  for (int i = 0; i < 100 && !is_back; ++i)
    is_back = TestClient(server.port(), "127.0.0.2").get("/health").status == 200;
  EXPECT_TRUE(is_back);
}

}  // namespace
}  // namespace outrider
