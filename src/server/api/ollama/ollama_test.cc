// SPDX-License-Identifier: Apache-2.0
// Bodies, lines and errors of Ollama's routes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/api/answers/test_model.h"
#include "server/api/ollama/ollama_calls.h"
#include "server/api/ollama/ollama_models.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr std::string_view kOllamaTemplate =
    "{% for m in messages %}[{{ m.role }}:{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.id }} {{ c.function.name }} "
    "{{ c.function.arguments | tojson }}</tool_call>{% endfor %}{% if m.tool_call_id %} for {{ "
    "m.tool_call_id }}"
    "{% endif %}]{% endfor %}{{ tools | tojson if tools }}"
    "{{ 'quiet' if enable_thinking is defined and not enable_thinking }}{# </think> #}";

std::unique_ptr<GenerationCall> ollama_call(const TestServedModel& model, ParseFunction parse,
                                            const std::string& body) {
  auto call = parse_call(parse, body, model.context());
  EXPECT_TRUE(call.ok()) << body << ": " << call.error().message;
  return call.ok() ? std::move(call).value() : nullptr;
}

std::string ollama_prompt(const TestServedModel& model, ParseFunction parse, const std::string& body) {
  const auto call = ollama_call(model, parse, body);
  return call == nullptr ? "refused"
                         : model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
}

std::vector<Json> lines_of(const std::string& events) {
  std::vector<Json> lines;
  for (size_t begin = 0, end = 0; (end = events.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(Json::parse(events.substr(begin, end - begin)));
  return lines;
}

constexpr const char* kOllamaChat = R"({"model":"m","messages":[{"role":"user","content":"Hi"}])";

TEST(Ollama, ChatsReadTheirMessages) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  EXPECT_EQ(
      ollama_prompt(model, parse_ollama_chat, R"({"model":"m:latest","think":false,"messages":[
      {"role":"system","content":"s"},{"role":"user","content":"u"},
      {"role":"assistant","content":"","thinking":"why","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}},
        {"function":{"name":"g","arguments":{}}}]},
      {"role":"tool","tool_name":"f","content":"one"},{"role":"tool","content":"two"}]})"),
      "[system:s][user:u][assistant:(why)<tool_call>call10000 f {\"x\": 1}</tool_call><tool_call>call10001 g "
      "{}</tool_call>][tool:one for call10000][tool:two for call10001]quiet");
  EXPECT_THAT(
      ollama_prompt(
          model, parse_ollama_chat,
          std::string(kOllamaChat) +
              R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]})"),
      HasSubstr(R"("name": "f")"));
}

TEST(Ollama, OptionsAreTheFieldsOfOtherNames) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  const auto call =
      ollama_call(model, parse_ollama_chat, std::string(kOllamaChat) + R"(,"stream":false,"keep_alive":"5m",
      "format":{"type":"null"},"options":{"num_predict":7,"temperature":0.5,"top_k":3,"top_p":0.4,"min_p":0.1,"seed":5,
      "stop":["x"],"repeat_penalty":1.25,"num_ctx":100000,"num_gpu":1}})");
  ASSERT_NE(call, nullptr);
  EXPECT_FALSE(call->streams());
  const Request& request = call->requests()[0];
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_FLOAT_EQ(static_cast<float>(request.sampling.top_p), 0.4f);
  EXPECT_FLOAT_EQ(static_cast<float>(request.sampling.min_p), 0.1f);
  EXPECT_EQ(request.sampling.seed, 5u);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.25);
  EXPECT_EQ(request.stop, std::vector<std::string>{"x"});
  EXPECT_NE(request.constraint, nullptr);
  EXPECT_THAT(call->ignored_fields(),
              testing::UnorderedElementsAre("keep_alive", "options.num_ctx", "options.num_gpu"));
  const auto narrow =
      ollama_call(model, parse_ollama_chat, std::string(kOllamaChat) + R"(,"options":{"num_ctx":50}})");
  ASSERT_NE(narrow, nullptr);
  EXPECT_TRUE(narrow->streams());  // without a word about it
  EXPECT_EQ(narrow->requests()[0].max_tokens + static_cast<int64_t>(narrow->requests()[0].prompt.size()), 50);
}

TEST(Ollama, ErrorsNameTheField) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  const auto error = [&](const std::string& members) {
    const auto call =
        parse_call(parse_ollama_chat, std::string(kOllamaChat) + members + "}", model.context());
    return call.ok() ? "accepted" : call.error().param;
  };
  EXPECT_EQ(error(""), "accepted");
  EXPECT_EQ(error(R"(,"options":{"temprature":1})"), "options.temprature");
  EXPECT_EQ(error(R"(,"options":{"num_ctx":3})"), "options.num_ctx");
  EXPECT_EQ(error(R"(,"options":{"mirostat":2})"), "options.mirostat");
  EXPECT_EQ(error(R"(,"format":"xml")"), "format");
  EXPECT_EQ(error(R"(,"think":"hard")"), "think");
  EXPECT_EQ(error(R"(,"logprobs":true)"), "logprobs");
  EXPECT_EQ(error(R"(,"n":2)"), "n");
  const auto other = parse_call(parse_ollama_generate, R"({"model":"other","prompt":"x"})", model.context());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().status, 404);
  EXPECT_EQ(error_body(other.error(), ErrorForm::kOllama),
            R"({"error":"model 'other' not found; this server has 'm'"})");
}

TEST(Ollama, StreamsAreLinesAndEndWithCounts) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  const auto call =
      ollama_call(model, parse_ollama_chat,
                  std::string(kOllamaChat) + R"(,"tools":[{"type":"function","function":{"name":"f"}}]})");
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->content_type(), "application/x-ndjson");
  EXPECT_EQ(call->ping(), "");
  std::string events;
  call->start(events);
  for (const char* text : {"<think>So.</think>\n\nHel", "lo", "<tool_call>{\"name\": \"f\", \"argu",
                           "ments\": {\"a\": 1}}</tool_call>"})
    call->add(0, delta_of(model, text), events);
  call->add(0, last_delta("", {}), events);
  const std::vector<Json> lines = lines_of(events);
  std::string content, thinking;
  Json calls = Json::array();
  for (const Json& line : lines) {
    EXPECT_EQ(line["model"], "m");
    EXPECT_EQ(line["created_at"], "2023-11-14T22:13:21Z");
    EXPECT_EQ(line["done"], &line == &lines.back());
    content += line["message"]["content"];
    thinking += line["message"].value("thinking", "");
    for (const Json& one : line["message"].value("tool_calls", Json::array())) calls.push_back(one);
  }
  EXPECT_EQ(content, "Hello");
  EXPECT_EQ(thinking, "So.");
  EXPECT_EQ(calls, Json::parse(R"([{"function":{"name":"f","arguments":{"a":1}}}])"));
  const Json& end = lines.back();
  EXPECT_EQ(end["done_reason"], "stop");
  EXPECT_EQ(end["prompt_eval_count"], call->requests()[0].prompt.size());
  EXPECT_GT(end["eval_count"], 4);
  for (const char* duration : {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"})
    EXPECT_TRUE(end[duration].is_number_integer()) << duration;
  EXPECT_EQ(lines_of(call->error_events({.message = "gone"}))[0]["error"], "gone");
}

TEST(Ollama, GeneratesFromTemplatesRawTextsAndEarlierTokens) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  EXPECT_EQ(ollama_prompt(model, parse_ollama_generate, R"({"model":"m","system":"s","prompt":"p"})"),
            "[system:s][user:p]");
  EXPECT_EQ(ollama_prompt(model, parse_ollama_generate, R"({"model":"m","prompt":"p","raw":true})"), "p");
  const auto call = ollama_call(model, parse_ollama_generate, R"({"model":"m","prompt":"p","stream":false})");
  std::string none;
  call->add(0, delta_of(model, "Hello"), none);
  call->add(0, last_delta("Hello", model.tokens("Hello"), FinishReason::kLength), none);
  const Json answer = Json::parse(call->body());
  EXPECT_EQ(answer["response"], "Hello");
  EXPECT_EQ(answer["done_reason"], "length");
  const std::string context = answer["context"].dump();
  EXPECT_THAT(
      ollama_prompt(model, parse_ollama_generate, R"({"model":"m","prompt":"q","context":)" + context + "}"),
      testing::StartsWith("[user:p]Hello"));
}

TEST(Ollama, AnEmptyPromptOnlyLoads) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  for (const ParseFunction parse : {parse_ollama_chat, parse_ollama_generate}) {
    const auto call = ollama_call(model, parse, R"({"model":"m","stream":false})");
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->requests()[0].max_tokens, 1);
    std::string none;
    call->add(0, delta_of(model, "a"), none);
    call->add(0, last_delta("a", {}), none);
    const Json answer = Json::parse(call->body());
    EXPECT_EQ(answer["done_reason"], "load");
    EXPECT_EQ(parse == parse_ollama_chat ? answer["message"]["content"] : answer["response"], "");
  }
}

TEST(Ollama, DescribesTheModel) {
  TestServedModel model(kOllamaTemplate);
  ServedModel& served = model.model();
  served.name = "m";
  served.info.family = "llama";
  served.info.parameters = 1'100'000'000;
  served.info.weights = "q4_k";
  served.info.model_path = "/models/m.gguf";
  const Json tags = Json::parse(ollama_tags_body(served))["models"];
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags[0]["name"], "m");
  EXPECT_EQ(tags[0]["details"]["parameter_size"], "1.1B");
  EXPECT_EQ(tags[0]["details"]["quantization_level"], "Q4_K");
  EXPECT_EQ(tags[0]["digest"].get<std::string>().size(), 64u);
  const auto shown = ollama_show_body(R"({"model":"m:latest"})", served, {});
  ASSERT_TRUE(shown.ok()) << shown.error().message;
  const Json show = Json::parse(*shown);
  EXPECT_EQ(show["model_info"]["llama.context_length"], 1024);
  EXPECT_EQ(show["capabilities"], Json::parse(R"(["completion","tools","thinking"])"));
  EXPECT_EQ(ollama_show_body(R"({"model":"n"})", served, {}).error().status, 404);
  EXPECT_TRUE(Json::parse(ollama_version_body())["version"].is_string());
  const Json running = Json::parse(ollama_ps_body(served))["models"];
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0]["name"], "m");
  EXPECT_EQ(running[0]["context_length"], 1024);
}

// The body of an answer whose inputs have these states.
Json embedded(const TestServedModel& model, ParseFunction parse, const std::string& body) {
  const auto call = ollama_call(model, parse, body);
  if (call == nullptr) return "refused";
  std::string none;
  for (size_t i = 0; i < call->requests().size(); ++i) {
    ChoiceDelta delta;
    delta.completion.emplace();
    delta.completion->embedding = {0, 3, 0, -4};
    delta.completion->prompt_tokens = 5;
    call->add(static_cast<int>(i), std::move(delta), none);
  }
  return Json::parse(call->body());
}

TEST(Ollama, EmbedsTexts) {
  TestServedModel model(kOllamaTemplate);
  model.model().name = "m";
  model.model().hidden_size = 4;
  const Json several =
      embedded(model, parse_ollama_embed,
               R"({"model":"m","input":["a","b"],"truncate":true,"options":{},"keep_alive":"5m"})");
  EXPECT_EQ(several["model"], "m");
  ASSERT_EQ(several["embeddings"].size(), 2u);
  EXPECT_NEAR(several["embeddings"][1][3].get<double>(), -0.8, 1e-6);
  EXPECT_EQ(several["prompt_eval_count"], 10);
  const Json one = embedded(model, parse_ollama_embeddings, R"({"model":"m","prompt":"a"})");
  EXPECT_NEAR(one["embedding"][1].get<double>(), 0.6, 1e-6);
  const auto status = [&](const std::string& body) {
    const auto call = parse_call(parse_ollama_embed, body, model.context());
    return call.ok() ? 200 : call.error().status;
  };
  EXPECT_EQ(status(R"({"model":"n","input":"a"})"), 404);
  EXPECT_EQ(status(R"({"model":"m"})"), 400);
  const std::string text = "\"" + std::string(8000, 'x') + "\"";
  EXPECT_EQ(status(R"({"model":"m","input":)" + text + "}"), 200);
  EXPECT_EQ(status(R"({"model":"m","truncate":false,"input":)" + text + "}"), 400);
}

}  // namespace
}  // namespace outrider
