// SPDX-License-Identifier: Apache-2.0
// Bodies and events of /v1/messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/answers/test_model.h"
#include "server/api/answers/text_routes.h"

namespace outrider {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr std::string_view kShowing =
    "{% for m in messages %}[{{ m.role }}:{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }} "
    "{{ c.function.arguments | tojson }}</tool_call>{% endfor %}]{% endfor %}{{ tools | tojson if tools }}"
    "{{ 'quiet' if enable_thinking is defined and not enable_thinking }}{# </think> #}";
constexpr std::string_view kHiMessage = R"("max_tokens":50,"messages":[{"role":"user","content":"Hi"}])";

std::unique_ptr<GenerationCall> message_call(const TestServedModel& model, const std::string& body) {
  auto call = model.message(body);
  EXPECT_TRUE(call.ok()) << call.error().message;
  return call.ok() ? std::move(call).value() : nullptr;
}

std::string prompt_of_message(const TestServedModel& model, const std::string& body) {
  const auto call = message_call(model, body);
  return call == nullptr ? "refused"
                         : model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
}

TEST(Messages, ReadTheirBlocks) {
  const TestServedModel model(kShowing);
  EXPECT_EQ(prompt_of_message(
                model,
                R"({"max_tokens":5,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
      "thinking":{"type":"disabled"},
      "messages":[{"role":"user","content":"u"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"why","signature":""},{"type":"text","text":"a"},
        {"type":"tool_use","id":"1","name":"f","input":{"x":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"ok"}],
        "is_error":true},{"type":"text","text":"go on"}]}]})"),
            "[system:s][user:u][assistant:(why)a<tool_call>f {\"x\": 1}</tool_call>][tool:Error: ok][user:go "
            "on]quiet");
  EXPECT_THAT(
      prompt_of_message(model, "{" + std::string(kHiMessage) +
                                   R"(,"tools":[{"name":"f","input_schema":{"type":"object"}}]})"),
      HasSubstr(R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])"));
}

TEST(Messages, LogWhatOnlyAnthropicsServersKnow) {
  const TestServedModel model(kShowing);
  const auto call =
      message_call(model, R"({"max_tokens":-1,"cache_control":{"type":"ephemeral"},"inference_geo":"us",
      "speed":"standard","diagnostics":{"previous_message_id":null},"user_profile_id":"u","workspace_id":"w",
      "thinking":{"type":"between_tools"},"output_config":{"effort":"max","task_budget":{"type":"tokens"}},
      "tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"f","input_schema":{"type":"object"},
        "cache_control":{"type":"ephemeral"},"eager_input_streaming":true}],
      "messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain",
        "data":"d"}},{"type":"text","text":"u"}]},
      {"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"a"}]},
      {"role":"user","content":"more"}]})");
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->ignored_fields(),
              testing::UnorderedElementsAre("cache_control", "inference_geo", "speed", "diagnostics",
                                            "user_profile_id", "workspace_id", "output_config.task_budget",
                                            "tools[0]", "messages[1].content[0]", "messages[1].content[1]"));
  const std::string prompt = model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
  EXPECT_THAT(prompt, HasSubstr("[user:d\nu][assistant:a][user:more]"));
  EXPECT_GT(call->requests()[0].max_tokens, 100);
}

TEST(Messages, TakeNamesOf128LettersAndManyTools) {
  const TestServedModel model;
  const auto status = [&](size_t name, size_t count) {
    std::string tools;
    for (size_t i = 0; i < count; ++i) {
      std::string one = std::to_string(i);
      one.insert(0, name - one.size(), 't');
      tools +=
          (i == 0 ? "" : ",") + std::string(R"({"name":")") + one + R"(","input_schema":{"type":"object"}})";
    }
    const auto call = model.message("{" + std::string(kHiMessage) +
                                    R"(,"tool_choice":{"type":"none"},"tools":[)" + tools + "]}");
    return call.ok() ? "accepted" : call.error().param;
  };
  EXPECT_EQ(status(128, 1), "accepted");
  EXPECT_EQ(status(129, 1), "tools[0].name");
  EXPECT_EQ(status(8, 200), "accepted");
}

TEST(Messages, ContinueTheAssistantsText) {
  const TestServedModel model;
  EXPECT_THAT(prompt_of_message(model, R"({"max_tokens":5,"messages":[{"role":"user","content":"Count"},
      {"role":"assistant","content":"one, two"}]})"),
              EndsWith("<|im_start|>assistant\none, two"));
}

TEST(Messages, NameWhatTheyRefuse) {
  const TestServedModel model;
  const auto param = [&](const std::string& body) {
    const auto call = model.message(body);
    return call.ok() ? "accepted" : call.error().param;
  };
  const std::string hi(kHiMessage);
  EXPECT_EQ(param(R"({"messages":[]})"), "max_tokens");
  EXPECT_EQ(param(R"({"max_tokens":5,"messages":[]})"), "messages");
  EXPECT_EQ(param(R"({"max_tokens":5,"messages":[{"role":"user","content":[{"type":"audio"}]}]})"),
            "messages[0].content[0].type");
  EXPECT_EQ(param("{" + hi + R"(,"tools":[{"type":"bash_20250124","name":"bash"}]})"), "accepted");
  EXPECT_EQ(param("{" + hi + R"(,"thread":{"id":"t"}})"), "thread");
  EXPECT_EQ(param("{" + hi + R"(,"tool_choice":{"type":"tool","name":"g"}})"), "tool_choice.name");
  EXPECT_EQ(param("{" + hi + R"(,"frobnicate":1})"), "frobnicate");
  EXPECT_EQ(param("{" + hi +
                  R"(,"metadata":{"user_id":"u"},"stop_sequences":["x"],"top_k":5,"service_tier":"auto"})"),
            "accepted");
}

TEST(Messages, TakeMoreTokensThanFit) {
  const TestServedModel model;
  const auto call =
      message_call(model, R"({"max_tokens":32000,"messages":[{"role":"user","content":"Hi"}]})");
  const Request& request = call->requests()[0];
  EXPECT_EQ(request.max_tokens + static_cast<int64_t>(request.prompt.size()), 1024);
}

TEST(Messages, StreamBlocks) {
  const TestServedModel model(kShowing);
  const auto call =
      message_call(model, "{" + std::string(kHiMessage) +
                              R"(,"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}]})");
  std::string events;
  call->start(events);
  for (const std::string_view text :
       {"<think>So.</think>Hello", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}"}) {
    call->add(0, delta_of(model, text), events);
  }
  call->add(0, last_delta("", {}), events);
  for (
      const std::string_view part :
      {R"({"type":"message_start","message":{"id":"msg_abc","type":"message","role":"assistant","model":"small",)"
       R"("content":[],"stop_reason":null)",
       R"("index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})",
       R"("index":0,"delta":{"type":"thinking_delta","thinking":"So."}})",
       R"("index":1,"content_block":{"type":"text","text":""}})",
       R"("index":1,"delta":{"type":"text_delta","text":"Hello"}})",
       R"("index":2,"content_block":{"type":"tool_use","id":")", R"("name":"f","input":{}}})",
       R"("delta":{"type":"input_json_delta","partial_json":"{\"a\": 1}"}})",
       R"({"type":"content_block_stop","index":2})",
       R"({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{)"}) {
    EXPECT_THAT(events, HasSubstr(part));
  }
  EXPECT_TRUE(events.starts_with("event: message_start\ndata: {"));
  EXPECT_THAT(events, EndsWith("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
}

TEST(Messages, TellWhyTheyStop) {
  const TestServedModel model;
  const auto body_after = [&](const std::string& fields, ChoiceDelta last) {
    const auto call = message_call(model, "{" + std::string(kHiMessage) + fields + "}");
    std::string none;
    call->add(0, std::move(last), none);
    return call->body();
  };
  EXPECT_THAT(body_after("", last_delta("", {})),
              HasSubstr(R"("content":[],"stop_reason":"end_turn","stop_sequence":null)"));
  EXPECT_THAT(body_after("", last_delta("", {}, FinishReason::kLength)),
              HasSubstr(R"("stop_reason":"max_tokens")"));
  ChoiceDelta stopped = last_delta("Once", {});
  stopped.completion->tokens = model.tokens("Once upon");
  EXPECT_THAT(body_after(R"(,"stop_sequences":[" upon"])", std::move(stopped)),
              HasSubstr(R"("stop_reason":"stop_sequence","stop_sequence":" upon")"));
}

TEST(Messages, CountTheirTokens) {
  const TestServedModel model;
  const auto count = message_tokens_body(R"({"model":"small","messages":[{"role":"user","content":"Hi"}]})",
                                         *model.context().model);
  ASSERT_TRUE(count.ok()) << count.error().message;
  EXPECT_TRUE(count->starts_with("{\"input_tokens\":")) << *count;
  EXPECT_THAT(error_body({.status = 404, .message = "m"}, ErrorForm::kAnthropic),
              R"({"type":"error","error":{"type":"not_found_error","message":"m"}})");
}

}  // namespace
}  // namespace outrider
