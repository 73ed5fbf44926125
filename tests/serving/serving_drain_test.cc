// SPDX-License-Identifier: Apache-2.0
// A server that is told to stop under load writes a line for every call, whatever state the call is in.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "config/environment.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

int runs() {
  const auto variables = read_environment();
  const auto given = variables.find("OUTRIDER_STOPS");
  return given == variables.end() ? 3 : std::atoi(given->second.c_str());
}

// The statuses of the lines of this route, and how often each occurs.
std::map<int, int> logged(const std::filesystem::path& log, const std::string& route) {
  std::map<int, int> statuses;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.value("event", "") == "request" && json.value("route", "") == route)
      ++statuses[json["status"].get<int>()];
  }
  return statuses;
}

TEST(ServingDrain, EveryCallHasItsLine) {
  constexpr int kCalls = 6;
  const std::filesystem::path log = std::filesystem::path(testing::TempDir()) / "drain_log";
  for (int run = 0; run < runs(); ++run) {
    ServeProcess server(
        {"--drain-timeout", "0.1", "--max-batch", "3", "--speculative", "none", "--kernels", "reference"},
        {"sh", "-c", "exec \"$@\" 2>" + log.string(), "sh"});
    ASSERT_TRUE(server.wait_until_ready());
    std::vector<TestClient> clients;
    for (int i = 0; i < kCalls; ++i) clients.emplace_back(server.port());
    for (int i = 0; i < kCalls; ++i) {
      clients[static_cast<size_t>(i)].send(post_text("/v1/completions", long_call(i % 2 == 0, 900)));
    }
    while (server.stats()["calls"] != kCalls) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(15 * run));
    EXPECT_EQ(server.end(SIGTERM), 0);
    const std::map<int, int> statuses = logged(log, "/v1/completions");
    int lines = 0;
    for (const auto& [status, count] : statuses) {
      EXPECT_TRUE(status == 200 || status == 503) << status;
      lines += count;
    }
    EXPECT_EQ(lines, kCalls) << "run " << run;
  }
  std::filesystem::remove(log);
}

}  // namespace
}  // namespace outrider
