// SPDX-License-Identifier: Apache-2.0
// A busy server is stopped and destroyed at random moments, with connections, streams, WebSockets and calls
// in every state. OUTRIDER_STOPS (50) is how often; ./dev slow makes it 1,000, under sanitizers this finds
// what outlives what it uses.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "config/environment.h"
#include "remote/protocol/messages.h"
#include "tests/serving/drafting_fixture.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

int stops() {
#ifdef OUTRIDER_SLOW_TEST
  constexpr int kUsual = 1000;
#else
  constexpr int kUsual = 50;
#endif
  const auto variables = read_environment();
  const auto given = variables.find("OUTRIDER_STOPS");
  return given == variables.end() ? kUsual : std::atoi(given->second.c_str());
}

std::vector<std::string> openings() {
  const std::string upgrade =
      "GET /v1/drafting HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: " +
      std::string(kDraftingProtocol) + "\r\n\r\n";
  const std::string whole = post_text("/v1/completions", long_call(true));
  return {whole,
          post_text("/v1/completions", long_call(false)),
          post_text("/v1/completions", R"({"prompt": ")" + std::string(200'000, ' ') + R"("})"),
          post_text("/tokenize", R"({"content": ")" + std::string(100'000, 'a') + R"("})"),
          whole.substr(0, whole.size() / 2),
          whole + whole + whole,
          upgrade,
          upgrade + "\x82\x01",
          "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
          ""};
}

// Opens connections in the given way until the server is gone.
void keep_busy(int port, const std::string& opening, const std::atomic<bool>& ends) {
  while (!ends) {
    TestClient client(port);
    if (!client.is_connected()) return;
    client.send(opening);
    for (int i = 0; i < 4 && !ends; ++i) client.receive(std::chrono::milliseconds(3));
  }
}

TEST(ServerStop, ABusyServerMayEndAtAnyMoment) {
  std::mt19937 random(20261127);
  const std::vector<std::string> ways = openings();
  for (int i = 0; i < stops(); ++i) {
    TestServer server(verify_for_clients);
    if (random() % 4 != 0) {
      ASSERT_TRUE(server.wait_until_ready());
    }
    std::atomic<bool> ends = false;
    std::vector<std::thread> clients;
    for (const std::string& way : ways)
      clients.emplace_back([&, port = server.port()] { keep_busy(port, way, ends); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    if (random() % 4 == 0) server.server().drain();
    server.server().stop();
    const Status status = server.wait();
    EXPECT_TRUE(status.ok()) << status.error().message;
    ends = true;
    for (std::thread& client : clients) client.join();
  }
}

}  // namespace
}  // namespace outrider
