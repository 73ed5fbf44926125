// SPDX-License-Identifier: Apache-2.0
// Mutated requests: every answer is complete, and every error is an error object. OUTRIDER_MUTATIONS (1,000)
// is their number; ./dev sanitize asan runs them with checks.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

struct Seed {
  std::string_view path;
  std::string_view body;
};

constexpr std::array kSeeds = {
    Seed{"/v1/completions",
         R"({"model": "tiny", "prompt": "hello", "max_tokens": 4, "temperature": 0.5, "seed": 7, "n": 2})"},
    Seed{
        "/v1/completions",
        R"({"prompt": [1, 2, 3], "max_tokens": 3, "stream": true, "stream_options": {"include_usage": true}})"},
    Seed{
        "/v1/completions",
        R"({"prompt": ["a", "b"], "max_tokens": 2, "logprobs": 2, "echo": true, "prompt_logprobs": 1, "stop": ["x", "y"]})"},
    Seed{
        "/v1/completions",
        R"({"prompt": "a", "max_tokens": 3, "logit_bias": {"5": -100, "6": 3.5}, "top_k": 3, "min_p": 0.1})"},
    Seed{"/v1/completions",
         R"({"prompt": "a", "max_tokens": 3, "speculative": {"mode": "off", "budget": 4}, "top_p": 0.9})"},
    Seed{"/v1/completions",
         R"({"prompt": "a", "max_tokens": 4, "response_format": {"type": "json_schema", "json_schema":
        {"name": "x", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}})"},
    Seed{"/v1/completions",
         R"({"prompt": "a", "max_tokens": 4, "structured_outputs": {"regex": "[ab]{1,3}(c|d)*"}})"},
    Seed{"/v1/chat/completions",
         R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "max_tokens": 3})"},
    Seed{"/v1/chat/completions",
         R"({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function":
        {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}}], "max_tokens": 3})"},
    Seed{
        "/v1/responses",
        R"({"input": [{"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "1", "name": "f",
        "arguments": "{}"}, {"type": "function_call_output", "call_id": "1", "output": "x"}], "max_output_tokens": 3,
        "tools": [{"type": "function", "name": "f"}], "text": {"format": {"type": "json_object"}}, "stream": true})"},
    Seed{
        "/v1/messages",
        R"({"max_tokens": 3, "system": "s", "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1",
        "name": "f", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}], "stop_sequences": ["x"], "stream": true})"},
    Seed{"/tokenize", R"({"content": "hello", "add_special": true})"},
    Seed{"/detokenize", R"({"tokens": [1, 2, 3]})"},
    Seed{"/apply-template", R"({"messages": [{"role": "user", "content": "hi"}]})"},
};

constexpr std::array<std::string_view, 26> kPieces = {"null",
                                                      "true",
                                                      "-1",
                                                      "0",
                                                      "1e400",
                                                      "-0.0",
                                                      "9223372036854775808",
                                                      "2147483648",
                                                      "\"\"",
                                                      "[]",
                                                      "{}",
                                                      "[[[[[[[[",
                                                      "]]",
                                                      "}}",
                                                      "\\ud800",
                                                      "\\u0000",
                                                      "\x80",
                                                      "\xff\xfe",
                                                      "\"n\":",
                                                      "NaN",
                                                      "1.5",
                                                      ",",
                                                      ":",
                                                      "\"stop\": null,",
                                                      "\"stream\": 1,",
                                                      "\\"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  size_t below(size_t bound) { return random_() % bound; }

  std::string mutate(std::string text) {
    for (size_t i = 1 + below(4); i > 0 && !text.empty(); --i) {
      const size_t at = below(text.size()), length = below(12);
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(random_());
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), length * 4));
          break;
        case 3:
          text.insert(at, kPieces[below(kPieces.size())]);
          break;
        default:
          text.replace(at, length, kPieces[below(kPieces.size())]);
      }
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

int64_t wanted() {
  const auto variables = read_environment();
  const auto given = variables.find("OUTRIDER_MUTATIONS");
  return given == variables.end() ? 1000 : std::atoll(given->second.c_str());
}

TEST(ServingMutations, AnswersAreWholeAndErrorsTyped) {
  TestServer server(with_chats);
  ASSERT_TRUE(server.wait_until_ready());
  Mutator mutator(20250101);
  std::map<int, int64_t> statuses;
  auto client = std::make_unique<TestClient>(server.port());
  for (int64_t i = 0; i < wanted(); ++i) {
    const Seed& seed = kSeeds[mutator.below(kSeeds.size())];
    const std::string body = mutator.mutate(std::string(seed.body));
    const TestAnswer answer = client->post(std::string(seed.path), body);
    ++statuses[answer.status];
    ASSERT_TRUE(answer.is_whole) << answer.status << " for " << body;
    ASSERT_LT(answer.status, 500) << body << "\n" << answer.body;
    if (answer.status >= 400) {
      const Json json = Json::parse(answer.body, nullptr, false);
      ASSERT_TRUE(json.is_object() && json.contains("error") && json["error"]["message"].is_string())
          << body << "\n"
          << answer.body;
    }
    if (answer.headers.at("connection") == "close") client = std::make_unique<TestClient>(server.port());
  }
  for (const auto& [status, count] : statuses) std::printf("%d: %ld\n", status, static_cast<long>(count));
  EXPECT_GT(statuses[400], 0);
  EXPECT_TRUE(server.wait_until_free());
}

}  // namespace
}  // namespace outrider
