// SPDX-License-Identifier: Apache-2.0
// A client with a valid key asks for what costs much. Each request is answered in bounded time and memory,
// and the requests of others take at most twice as long.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/chaos/chaos_runs.h"
#include "tests/serving/serve_process.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::seconds;

constexpr double kAnswerSeconds = 15;
constexpr double kMemoryMib = 400;

struct Bomb {
  std::string name;
  std::string path;
  std::string body;
  std::string headers = {};
};

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

Json request_with(const std::string& key, Json value) {
  Json body = {{"prompt", "x"}, {"max_tokens", 4}};
  body[key] = std::move(value);
  return body;
}

Json schema_request(Json schema) { return request_with("structured_outputs", {{"json", std::move(schema)}}); }

Json nested(const Json& inner, int depth) {
  Json schema = inner;
  for (int i = 0; i < depth; ++i)
    schema = {{"type", "object"}, {"properties", {{"a", schema}}}, {"required", {"a"}}};
  return schema;
}

Json many_values(int count) {
  Json values = Json::array();
  for (int i = 0; i < count; ++i) values.push_back("value " + std::to_string(i));
  return {{"enum", values}};
}

std::vector<Bomb> schema_bombs() {
  const std::string path = "/v1/completions";
  const auto of_regex = [&](const std::string& regex) {
    return request_with("structured_outputs", {{"regex", regex}}).dump();
  };
  return {
      {"nested counted repeats", path, of_regex("((((a{1,99}){1,99}){1,99}){1,99}){1,99}")},
      {"length of 1e9", path, of_regex("a{1000000000}")},
      {"alternatives", path, of_regex("(" + repeated("a|b|", 20'000) + "c)*")},
      {"unicode classes", path, of_regex(repeated("[\\u0000-\\uffff]{1,50}", 200))},
      {"items without end", path,
       schema_request({{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1'000'000'000}})
           .dump()},
      {"long strings", path,
       schema_request({{"type", "string"}, {"minLength", 1'000'000'000}, {"maxLength", 2'000'000'000}})
           .dump()},
      {"10,000 values", path, schema_request(many_values(10'000)).dump()},
      {"recursive references", path,
       schema_request({{"$defs",
                        {{"a", {{"anyOf", {{{"$ref", "#/$defs/b"}}, {{"$ref", "#/$defs/a"}}}}}},
                         {"b", {{"$ref", "#/$defs/a"}}}}},
                       {"$ref", "#/$defs/a"}})
           .dump()},
      {"depth", path, schema_request(nested({{"type", "string"}}, 2000)).dump()},
      {"properties", path,
       [] {
         Json properties;
         for (int i = 0; i < 5000; ++i) properties["p" + std::to_string(i)] = {{"type", "integer"}};
         return schema_request({{"type", "object"}, {"properties", properties}}).dump();
       }()},
      {"grammar", path,
       request_with("structured_outputs",
                    {{"grammar", "root ::= " + repeated("(", 3000) + "a" + repeated(")*", 3000)}})
           .dump()},
  };
}

std::string zipped(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<Bomb> other_bombs() {
  const std::string path = "/v1/completions";
  Json stops = Json::array(), bias = Json::object();
  for (int i = 0; i < 5000; ++i) stops.push_back(std::string(20, 'a') + std::to_string(i));
  for (int i = 0; i < 100'000; ++i) bias[std::to_string(i)] = -100;
  return {
      {"stops", path, request_with("stop", stops).dump()},
      {"bias of every token", path, request_with("logit_bias", bias).dump()},
      {"a megabyte of one character", path, request_with("prompt", std::string(1 << 20, 'a')).dump()},
      {"8 MB of spaces", path, request_with("prompt", std::string(8'000'000, ' ')).dump()},
      {"8 MB of apostrophes", path, request_with("prompt", std::string(8'000'000, '\'')).dump()},
      {"gzip", path, zipped(request_with("prompt", std::string(200 << 20, 'a')).dump()),
       "Content-Encoding: gzip\r\n"},
      {"brackets", path, repeated("[", 1'000'000)},
      {"many choices", path, request_with("n", 100'000'000).dump()},
      {"log-probabilities", path, request_with("logprobs", 1'000'000).dump()},
      {"tokens without end", path, request_with("max_tokens", 2'000'000'000).dump()},
      {"stored responses", "/v1/responses",
       Json{{"input", std::string(900, 'b')}, {"max_output_tokens", 16}, {"store", true}}.dump()},
      {"nested messages", "/v1/chat/completions",
       Json{{"messages", Json::array({{{"role", "user"}, {"content", repeated("{{", 100'000)}}})},
            {"max_tokens", 1}}
           .dump()},
  };
}

double median_ms(int port, int count, const std::string& text) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    const TestAnswer answer = TestClient(port).post("/v1/completions", completion_of("The dog", 40));
    times.push_back(seconds_since(start) * 1e3);
    EXPECT_EQ(text_of(answer), text);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

class HostileClient : public testing::TestWithParam<bool> {};

TEST_P(HostileClient, IsBounded) {
  const std::string chats = testing::TempDir() + "outrider_chaos_template";
  std::ofstream(chats) << kPlainTurns;
  ServeProcess server({"--chat-template", chats});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string text =
      text_of(TestClient(server.port()).post("/v1/completions", completion_of("The dog", 40)));
  ASSERT_FALSE(text.empty());
  const double alone = median_ms(server.port(), 20, text);
  const double memory = server.resident_mib();
  for (const Bomb& bomb : GetParam() ? schema_bombs() : other_bombs()) {
    std::atomic<bool> is_over = false;
    std::atomic<int> answers = 0, last_status = 0;
    std::atomic<double> slowest = 0;
    std::thread hostile([&] {
      while (!is_over || answers == 0) {
        const auto start = Clock::now();
        const TestAnswer answer = TestClient(server.port()).post(bomb.path, bomb.body, bomb.headers);
        slowest = std::max(slowest.load(), seconds_since(start));
        last_status = answer.status;
        ++answers;
      }
    });
    const double together = median_ms(server.port(), 10, text);
    is_over = true;
    hostile.join();
    const double now = server.resident_mib();
    std::printf("%-28s status %3d, %4d answers, slowest %6.2f s; others %.0f -> %.0f ms; %.0f -> %.0f MiB\n",
                bomb.name.c_str(), last_status.load(), answers.load(), slowest.load(), alone, together,
                memory, now);
    EXPECT_TRUE(last_status == 200 || (last_status >= 400 && last_status < 500)) << bomb.name << last_status;
    EXPECT_LE(slowest, kAnswerSeconds) << bomb.name;
    EXPECT_LE(now - memory, kMemoryMib) << bomb.name;
    EXPECT_LE(together, 2 * alone + 20) << bomb.name;
  }
  EXPECT_TRUE(server.wait_until_free());
}

INSTANTIATE_TEST_SUITE_P(Bombs, HostileClient, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Schemas" : "Others"; });

}  // namespace
}  // namespace outrider
