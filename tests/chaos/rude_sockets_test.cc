// SPDX-License-Identifier: Apache-2.0
// Connections that idle, end halfway, ask without waiting or are reset in every state.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/chaos_runs.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RudeSockets, FiveThousandIdleConnections) {
  ServeProcess server({"--max-connections", "6000", "--max-connections-per-address", "6000"});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string body = completion_of("The dog", 40);
  const std::string text = text_of(TestClient(server.port()).post("/v1/completions", body));
  const double before = server.resident_mib();
  std::vector<TestClient> idle;
  // Addresses of their own, because one has not enough ports for many such runs.
  for (int i = 0; i < 5000; ++i) idle.emplace_back(server.port(), "127.0.0." + std::to_string(2 + i % 8));
  const auto connected = std::ranges::count_if(idle, &TestClient::is_connected);
  const auto start = Clock::now();
  EXPECT_EQ(text_of(TestClient(server.port()).post("/v1/completions", body)), text);
  std::printf("%ld idle connections: %.1f -> %.1f MiB, an answer in %.0f ms\n", static_cast<long>(connected),
              before, server.resident_mib(), seconds_since(start) * 1e3);
  EXPECT_EQ(connected, 5000);
  EXPECT_LE(server.resident_mib() - before, 5000 * 0.03);
  idle.clear();
  EXPECT_TRUE(server.wait_until_free());
}

// The client's end of the sending half is no hang-up.
TEST(RudeSockets, HalfClosed) {
  ServeProcess server;
  ASSERT_TRUE(server.wait_until_ready());
  const std::string body = completion_of("The dog", 40);
  const std::string text = text_of(TestClient(server.port()).post("/v1/completions", body));
  for (int i = 0; i < 20; ++i) {
    TestClient client(server.port());
    client.send(post_text("/v1/completions", body));
    client.half_close();
    const TestAnswer answer = client.read_answer();
    if (answer.status != 0) {
      EXPECT_EQ(text_of(answer), text);
    }
  }
  EXPECT_TRUE(server.wait_until_free());
}

TEST(RudeSockets, Pipelined) {
  ServeProcess server;
  ASSERT_TRUE(server.wait_until_ready());
  std::string requests;
  for (int i = 0; i < 100; ++i)
    requests += post_text("/v1/completions", completion_of(i % 2 == 0 ? "The dog" : "It was", 4));
  const std::string dog =
      text_of(TestClient(server.port()).post("/v1/completions", completion_of("The dog", 4)));
  const std::string it =
      text_of(TestClient(server.port()).post("/v1/completions", completion_of("It was", 4)));
  TestClient client(server.port());
  ASSERT_TRUE(client.send(requests));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(text_of(client.read_answer()), i % 2 == 0 ? dog : it) << i;
}

TEST(RudeSockets, ResetsInEveryState) {
  ServeProcess server;
  ASSERT_TRUE(server.wait_until_ready());
  std::mt19937 random(48);
  const std::string whole = post_text("/v1/completions", completion_of("Once upon a time", 200, true));
  const std::string usual =
      text_of(TestClient(server.port()).post("/v1/completions", completion_of("The dog", 40)));
  const int runs = chaos_runs(2000);
  for (int i = 0; i < runs; ++i) {
    TestClient client(server.port());
    // Byte after byte of the request, then the moments of the answer.
    const size_t sent = std::min(whole.size(), static_cast<size_t>(i) % (2 * whole.size()));
    client.send(whole.substr(0, sent));
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    if (random() % 4 == 0) client.half_close();
    client.abort();
    if (i % 200 == 0) {
      EXPECT_EQ(text_of(TestClient(server.port()).post("/v1/completions", completion_of("The dog", 40))),
                usual);
    }
  }
  EXPECT_TRUE(server.wait_until_free());
}

}  // namespace
}  // namespace outrider
