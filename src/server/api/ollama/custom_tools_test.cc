// SPDX-License-Identifier: Apache-2.0
// Custom tools of /v1/chat/completions, and images, which are left out everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/api/answers/test_model.h"
#include "server/api/ollama/ollama_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kShowsCalls =
    "{% for m in messages %}[{{ m.role }}:{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>"
    "{{ c.function.name }} {{ c.function.arguments | tojson }}</tool_call>{% endfor %}]{% endfor %}"
    "{{ tools | tojson if tools }}";
const std::string kCustom =
    R"("tools":[{"type":"custom","custom":{"name":"patch","description":"d","format":{"type":"grammar","grammar":)"
    R"({"syntax":"lark","definition":"start: /x/"}}}},{"type":"function","function":{"name":"f"}}])";
const std::string kAsk = R"("messages":[{"role":"user","content":"Hi"}])";

std::unique_ptr<GenerationCall> custom_call(const TestServedModel& model, const std::string& fields) {
  auto call = model.chat("{" + fields + "}");
  EXPECT_TRUE(call.ok()) << call.error().message;
  return call.ok() ? std::move(call).value() : nullptr;
}

std::string custom_prompt(const TestServedModel& model, const std::string& fields) {
  const auto call = custom_call(model, fields);
  return model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
}

TEST(CustomTools, AreFunctionsForTheModel) {
  const TestServedModel model(kShowsCalls);
  const std::string prompt = custom_prompt(model, kAsk + "," + kCustom);
  EXPECT_THAT(prompt,
              HasSubstr(R"("name": "patch", "description": "d\n\nThe input follows this grammar (lark):)"));
  EXPECT_THAT(prompt, HasSubstr(R"({"type": "function", "function": {"name": "f"}}])"));
  EXPECT_THAT(
      custom_prompt(
          model, R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"id":"a",)"
                 R"("type":"custom","custom":{"name":"patch","input":"x \"y\""}}]},)"
                 R"({"role":"tool","tool_call_id":"a","content":"done"}],)" +
                     kCustom),
      HasSubstr(R"(<tool_call>patch {"input": "x \"y\""}</tool_call>)"));
}

TEST(CustomTools, AreCalledWithTheirInput) {
  const TestServedModel model(kShowsCalls);
  const std::vector<std::string> texts = {
      "<tool_call>{\"name\": \"patch\", \"argu", "ments\": {\"input\": \"a\\nb",
      "c\"}}</tool_call>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}", "</tool_call>"};
  const Json expected = Json::parse(R"([["custom","patch","a\nbc"],["function","f","{}"]])");
  std::string whole, none;
  const auto call = custom_call(model, kAsk + "," + kCustom);
  for (const std::string& text : texts) {
    call->add(0, delta_of(model, text), none);
    whole += text;
  }
  call->add(0, last_delta(whole, model.tokens(whole)), none);
  const Json choice = Json::parse(call->body())["choices"][0];
  Json calls = Json::array();
  for (const Json& one : choice["message"]["tool_calls"]) {
    const std::string type = one["type"];
    calls.push_back({type, one[type]["name"], one[type][type == "custom" ? "input" : "arguments"]});
  }
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");

  const auto stream = custom_call(model, kAsk + R"(,"stream":true,)" + kCustom);
  std::string events;
  stream->start(events);
  for (const std::string& text : texts) stream->add(0, delta_of(model, text), events);
  stream->add(0, last_delta(whole, model.tokens(whole)), events);
  Json streamed = Json::array();
  for (size_t at = 0; (at = events.find("data: {", at)) != std::string::npos; ++at) {
    const Json chunk = Json::parse(events.substr(at + 6, events.find('\n', at) - at - 6));
    for (const Json& one : chunk["choices"][0]["delta"].value("tool_calls", Json::array())) {
      if (one.contains("id")) streamed.push_back({one["type"], "", ""});
      Json& last = streamed[one["index"].get<size_t>()];
      const std::string type = last[0];
      last[1] = last[1].get<std::string>() + one[type].value("name", "");
      last[2] = last[2].get<std::string>() + one[type].value(type == "custom" ? "input" : "arguments", "");
    }
  }
  EXPECT_EQ(streamed, expected);
}

TEST(CustomTools, MayBeChosen) {
  const TestServedModel model(kShowsCalls);
  const auto fields = [](const std::string& choice) {
    return kAsk + "," + kCustom + R"(,"tool_choice":)" + choice;
  };
  const auto call = custom_call(model, fields(R"({"type":"custom","custom":{"name":"patch"}})"));
  ASSERT_NE(call, nullptr);
  EXPECT_NE(call->requests()[0].constraint, nullptr);
  const std::string prompt =
      custom_prompt(model, fields(R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[)"
                                  R"({"type":"custom","custom":{"name":"patch"}}]}})"));
  EXPECT_THAT(prompt, HasSubstr("patch"));
  EXPECT_THAT(prompt, testing::Not(HasSubstr(R"("name": "f")")));
}

// Parts that a model of text does not see.
TEST(Images, AreLeftOutOfEveryApi) {
  const TestServedModel model(kShowsCalls);
  const auto check = [&](const ApiResult<std::unique_ptr<GenerationCall>>& call, const std::string& prompt,
                         const std::string& path) {
    ASSERT_TRUE(call.ok()) << call.error().message;
    EXPECT_EQ(model.context().model->tokenizer->decode((*call)->requests()[0].prompt, false), prompt);
    EXPECT_THAT((*call)->ignored_fields(), ElementsAre(path));
  };
  check(model.chat(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url",)"
                   R"("image_url":{"url":"data:"}}]}]})"),
        "[user:a]", "messages[0].content[1]");
  check(model.response(R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:"},)"
                       R"({"type":"input_text","text":"a"}]}]})"),
        "[user:a]", "input[0].content[0]");
  const std::string image =
      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":""}})";
  check(model.message(R"({"max_tokens":5,"messages":[{"role":"user","content":[)" + image +
                      R"(,{"type":"text","text":"a"}]}]})"),
        "[user:a]", "messages[0].content[0]");
  check(model.message(R"({"max_tokens":5,"messages":[{"role":"user","content":[)" + image + "]}]}"),
        "[user:]", "messages[0].content[0]");
  check(parse_call(parse_ollama_chat,
                   R"({"model":"small","messages":[{"role":"user","content":"a","images":["AAAA"]}]})",
                   model.context()),
        "[user:a]", "messages[0].images");
  check(parse_call(parse_ollama_generate, R"({"model":"small","prompt":"a","images":["AAAA"]})",
                   model.context()),
        "[user:a]", "images");
}

TEST(Images, AreLeftOutOfResults) {
  const TestServedModel model(kShowsCalls);
  const auto call = model.message(
      R"({"max_tokens":5,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":[{"type":"tool_use",)"
      R"("id":"1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",)"
      R"("content":[{"type":"image","source":{}},{"type":"text","text":"seen"}]}]}]})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_THAT(model.context().model->tokenizer->decode((*call)->requests()[0].prompt, false),
              HasSubstr("[tool:seen]"));
}

}  // namespace
}  // namespace outrider
