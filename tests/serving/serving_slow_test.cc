// SPDX-License-Identifier: Apache-2.0
// Long tests of the server under load: overload, clients that vanish, read slowly or never finish, and a soak
// test.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "config/environment.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kClientsMib = 8;  // memory that 160 connections may need

std::string call(const std::string& prompt, int tokens, bool streams) {
  return fmt::format(
      R"({{"prompt": "{}", "max_tokens": {}, "temperature": 0, "ignore_eos": true, "stream": {}}})", prompt,
      tokens, streams ? "true" : "false");
}

// The value of an environment variable, or `usual`.
double seconds_of(const std::string& variable, double usual) {
  const auto variables = read_environment();
  const auto given = variables.find(variable);
  return given == variables.end() ? usual : std::atof(given->second.c_str());
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Outcomes of the requests to an overloaded server.
struct Served {
  std::atomic<int> served = 0, refused = 0, other = 0;
  std::mutex mutex;
  std::vector<double> refusal_ms;
};

// Sends requests until `end` and ignores Retry-After.
void ask_without_end(int port, Clock::time_point end, Served& total) {
  TestClient client(port);
  while (Clock::now() < end) {
    const auto start = Clock::now();
    client.send(post_text("/v1/completions", call("Once upon a time", 64, false)));
    const TestAnswer answer = client.read_answer();
    if (answer.status == 200) {
      ++total.served;
      continue;
    }
    if (answer.status == 429) {
      ++total.refused;
      const std::lock_guard lock(total.mutex);
      total.refusal_ms.push_back(seconds_since(start) * 1e3);
      EXPECT_EQ(answer.headers.count("retry-after"), 1u);
    } else {
      ++total.other;
    }
    std::this_thread::sleep_for(milliseconds(50));
  }
}

// Returns the number of answers per second.
double rate_with_clients(int port, int count, double length, Served& total, const auto& meanwhile) {
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
  std::vector<std::thread> clients;
  for (int i = 0; i < count; ++i) clients.emplace_back([&] { ask_without_end(port, end, total); });
  while (Clock::now() < end) meanwhile();
  for (std::thread& client : clients) client.join();
  return total.served / seconds_since(start);
}

// For OUTRIDER_OVERLOAD_SECONDS (20), ten times as many clients ask as batch and queue hold.
TEST(ServingSlow, OverloadIsRefusedFastAndForgotten) {
  const double length = seconds_of("OUTRIDER_OVERLOAD_SECONDS", 20);
  ServeProcess server({"--max-batch", "8", "--max-queue", "8"});
  ASSERT_TRUE(server.wait_until_ready());
  Served usual, total;
  const auto rest = [] { std::this_thread::sleep_for(milliseconds(100)); };
  const double peak = rate_with_clients(server.port(), 16, std::max(5.0, length / 20), usual, rest);
  EXPECT_EQ(usual.refused + usual.other, 0);
  const double before = server.resident_mib();
  double max = 0, slowest_health = 0;
  const double rate = rate_with_clients(server.port(), 160, length, total, [&] {
    const auto asked = Clock::now();
    EXPECT_EQ(TestClient(server.port()).get("/health").status, 200);
    slowest_health = std::max(slowest_health, seconds_since(asked) * 1e3);
    const Json stats = server.stats();
    EXPECT_LE(stats["calls"], 16);
    max = std::max(max, server.resident_mib());
    rest();
  });
  std::vector<double>& ms = total.refusal_ms;
  std::sort(ms.begin(), ms.end());
  ASSERT_GT(ms.size(), 100u);
  const double p99 = ms[ms.size() * 99 / 100];
  std::printf(
      "served %d (%.1f a second, %.1f without overload), refused %d, refusal p50 %.1f ms p99 %.1f ms, "
      "slowest "
      "/health %.1f ms, resident %.1f -> %.1f MiB\n",
      total.served.load(), rate, peak, total.refused.load(), ms[ms.size() / 2], p99, slowest_health, before,
      max);
  EXPECT_EQ(total.other, 0);
  EXPECT_GT(total.served, 0);
  EXPECT_LE(p99, 50);
  EXPECT_GE(rate, 0.4 * peak);  // the clients use the same processors
  EXPECT_LE(max, 1.1 * before + kClientsMib);
  const auto start = Clock::now();
  ASSERT_TRUE(server.wait_until_free());
  EXPECT_EQ(TestClient(server.port()).post("/v1/completions", call("Once", 16, false)).status, 200);
  EXPECT_LE(seconds_since(start), 2);
}

TEST(ServingSlow, DisconnectsLeaveSurvivorsAlone) {
  ServeProcess server({"--max-batch", "8"});
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<std::string> prompts = {"Once upon a time", "The dog", "One day, Lily", "It was"};
  std::vector<std::string> expected;
  for (const std::string& prompt : prompts) {
    expected.push_back(text_of(TestClient(server.port()).post("/v1/completions", call(prompt, 100, false))));
    ASSERT_FALSE(expected.back().empty());
  }
  std::atomic<int> left = 10'000, survivors = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      while (left-- > 0) {
        TestClient client(server.port());
        const std::string text =
            post_text("/v1/completions", call(prompts[random() % 4], 200, random() % 2 == 0));
        // Clients vanish after half of the header, in the queue, in prefill and while streaming.
        client.send(random() % 8 == 0 ? text.substr(0, random() % text.size()) : text);
        if (random() % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
        random() % 2 == 0 ? client.abort() : client.close();
      }
    });
  }
  threads.emplace_back([&] {
    for (size_t i = 0; left > 0; ++i) {
      const TestAnswer answer =
          TestClient(server.port()).post("/v1/completions", call(prompts[i % 4], 100, false));
      if (answer.status == 429) continue;
      EXPECT_EQ(text_of(answer), expected[i % 4]);
      ++survivors;
    }
  });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d survivors\n", survivors.load());
  EXPECT_GT(survivors, 10);
  EXPECT_TRUE(server.wait_until_free());
}

TEST(ServingSlow, SlowReadersAreBounded) {
  ServeProcess server({"--max-batch", "16"});
  ASSERT_TRUE(server.wait_until_ready());
  const double before = server.resident_mib();
  std::vector<TestClient> readers;
  for (int i = 0; i < 200; ++i) {
    readers.emplace_back(server.port(), "127.0.0.1", 2048);
    readers.back().send(post_text("/v1/completions", call("Once upon a time", 1000, true)));
  }
  for (TestClient& reader : readers) ASSERT_TRUE(reader.receive_until("text/event-stream", seconds(30)));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(TestClient(server.port()).get("/health").status, 200);
    for (TestClient& reader : readers) reader.receive(milliseconds(0));
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_EQ(text_of(TestClient(server.port()).post("/v1/completions", call("The dog", 16, false))).empty(),
            false);
  const double max = server.resident_mib();
  std::printf("resident %.1f -> %.1f MiB with 200 slow readers\n", before, max);
  EXPECT_LE(max - before, 200.0 * 0.5 + 60);
  readers.clear();
  EXPECT_TRUE(server.wait_until_free());
}

TEST(ServingSlow, SlowHeadersDoNotKeepOthersOut) {
  ServeProcess server;
  ASSERT_TRUE(server.wait_until_ready());
  std::vector<TestClient> slow;
  for (int i = 0; i < 1000; ++i) slow.emplace_back(server.port());
  for (TestClient& client : slow) client.send("GET /health HTTP/1.1\r\nX-A: ");
  const auto start = Clock::now();
  while (seconds_since(start) < 8) {
    for (TestClient& client : slow) client.send("a");
    const auto asked = Clock::now();
    EXPECT_EQ(TestClient(server.port()).get("/health").status, 200);
    EXPECT_LE(seconds_since(asked), 0.2);
    std::this_thread::sleep_for(milliseconds(500));
  }
  int closed = 0;
  std::this_thread::sleep_for(seconds(5));
  for (TestClient& client : slow) closed += client.is_closed(milliseconds(100)) ? 1 : 0;
  EXPECT_EQ(closed, 1000);
}

TEST(ServingSlow, AThousandIdleStreamsAreSmall) {
  ServeProcess server({"--max-batch", "1", "--max-queue", "1200"});
  ASSERT_TRUE(server.wait_until_ready());
  ASSERT_EQ(TestClient(server.port()).post("/v1/completions", call("Once", 64, false)).status, 200);
  const double before = server.resident_mib();
  std::vector<TestClient> streams;
  for (int i = 0; i < 1001; ++i) {
    streams.emplace_back(server.port());
    streams.back().send(post_text("/v1/completions", call("Once upon a time", 1000, true)));
  }
  for (TestClient& stream : streams) ASSERT_TRUE(stream.receive_until("text/event-stream", seconds(30)));
  EXPECT_GE(server.stats()["calls"], 900);
  const double grown = server.resident_mib() - before;
  std::printf("1000 idle streams: %.1f MiB\n", grown);
  EXPECT_LT(grown, 60);
  streams.clear();
  EXPECT_TRUE(server.wait_until_free());
}

TEST(ServingSlow, KilledAndStartedAgain) {
  double load_s = 0;
  {
    const auto start = Clock::now();
    ServeProcess server;
    ASSERT_TRUE(server.wait_until_ready());
    load_s = seconds_since(start);
  }
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    ServeProcess server;
    ASSERT_TRUE(server.wait_until_ready());
    EXPECT_LE(seconds_since(start), load_s + 2);
    TestClient client(server.port());
    client.send(post_text("/v1/completions", call("Once", 900, true)));
    std::this_thread::sleep_for(milliseconds(13 * i));
    server.end(SIGKILL);
  }
}

TEST(ServingSlow, EndsOnSignals) {
  ServeProcess server({"--drain-timeout", "1"});
  ASSERT_TRUE(server.wait_until_ready());
  TestClient client(server.port());
  client.send(post_text("/v1/completions", call("Once", 32, true)));
  ASSERT_TRUE(client.receive_until("data: ", seconds(10)));
  EXPECT_EQ(server.end(SIGTERM), 0);
}

// Requests of the soak: greedy and sampled, streamed, several choices, log-probabilities, stops, constraints,
// penalties, and plain decoding.
std::vector<std::string> soak_bodies() {
  std::vector<std::string> bodies;
  for (const char* fields :
       {R"("temperature": 0)", R"("temperature": 0, "stream": true)",
        R"("temperature": 0.8, "top_p": 0.9, "seed": 7, "n": 2)", R"("temperature": 0, "logprobs": 3)",
        R"("temperature": 0, "stop": [" and", "."])",
        R"("temperature": 0, "structured_outputs": {"regex": "[A-Z][a-z ]{5,30}[.!]"}, "stream": true)",
        R"("temperature": 1, "seed": 3, "structured_outputs": {"json": {"type": "object",
           "properties": {"age": {"type": "integer"}}, "required": ["age"]}})",
        R"("temperature": 0.7, "seed": 5, "frequency_penalty": 0.5, "min_p": 0.05, "stream": true)",
        R"("temperature": 0, "speculative": {"mode": "off"})"}) {
    bodies.push_back(fmt::format(R"({{"prompt": "The dog", "max_tokens": 60, {}}})", fields));
  }
  return bodies;
}

// The part of an answer that is always the same: ids and times differ.
std::string choices_of(const TestAnswer& answer) {
  if (answer.body.starts_with("data:")) return streamed_text(answer.body);
  return Json::parse(answer.body).at("choices").dump();
}

// A request of the soak, and its choices when nobody else asks.
struct SoakCall {
  std::string body, expected;
};

std::vector<SoakCall> soak_calls(int port) {
  std::vector<SoakCall> calls;
  for (const std::string& body : soak_bodies()) {
    const TestAnswer answer = TestClient(port).post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << body << answer.body;
    calls.push_back({body, choices_of(answer)});
  }
  return calls;
}

struct SoakCounts {
  std::atomic<int64_t> right = 0, wrong = 0, cancelled = 0, unchecked = 0;
};

// Sends requests until `is_over`, and hangs up on some.
void mixed_work(int port, unsigned seed, const std::vector<SoakCall>& calls, const std::atomic<bool>& is_over,
                SoakCounts& counts) {
  std::mt19937 random(seed);
  while (!is_over) {
    TestClient client(port);
    if (random() % 2 == 0) {
      const SoakCall& checked = calls[random() % calls.size()];
      const TestAnswer answer = client.post("/v1/completions", checked.body);
      (answer.status == 200 && choices_of(answer) == checked.expected ? counts.right : counts.wrong) += 1;
      continue;
    }
    client.send(
        post_text("/v1/completions", call(fmt::format("Tale {}", random() % 1000), 100, random() % 2 == 0)));
    if (random() % 3 == 0) {
      std::this_thread::sleep_for(milliseconds(random() % 200));
      counts.cancelled += 1;
      continue;
    }
    counts.unchecked += client.read_answer().status == 200 ? 1 : 0;
  }
}

// OUTRIDER_SOAK_SECONDS (60) of mixed work by 32 clients: every checked answer is right, and memory and file
// descriptors do not grow after the first third.
TEST(ServingSlow, Soak) {
  const double length = seconds_of("OUTRIDER_SOAK_SECONDS", 60);
  ServeProcess server({"--max-batch", "32", "--max-queue", "64"});
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<SoakCall> calls = soak_calls(server.port());
  const auto start = Clock::now();
  std::atomic<bool> is_over = false;
  SoakCounts counts;
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < 32; ++i) {
    clients.emplace_back([&, i] { mixed_work(server.port(), i, calls, is_over, counts); });
  }
  double early = 0, late = 0;
  int64_t early_files = 0;
  while (seconds_since(start) < length) {
    std::this_thread::sleep_for(seconds(1));
    const double now = server.resident_mib();
    if (seconds_since(start) < length / 3) {
      early = std::max(early, now);
      early_files = std::max(early_files, server.descriptors());
    } else {
      late = std::max(late, now);
    }
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  fmt::print(
      "{} right answers, {} wrong, {} unchecked, {} cancelled; resident {:.1f} MiB in the first third, "
      "{:.1f} MiB later\n",
      counts.right.load(), counts.wrong.load(), counts.unchecked.load(), counts.cancelled.load(), early,
      late);
  EXPECT_EQ(counts.wrong, 0);
  EXPECT_LE(late, early * 1.01);
  EXPECT_TRUE(server.wait_until_free());
  EXPECT_LE(server.descriptors(), early_files + 16);
}

}  // namespace
}  // namespace outrider
