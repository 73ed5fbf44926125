// SPDX-License-Identifier: Apache-2.0
// Bodies and events of /v1/responses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/answers/test_model.h"
#include "server/api/answers/text_routes.h"

namespace outrider {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kThinker =
    "{% for m in messages %}[{{ m.role }}:{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.id }} {{ c.function.name }} "
    "{{ c.function.arguments | tojson }}</tool_call>{% endfor %}{% if m.tool_call_id %} for {{ "
    "m.tool_call_id }}"
    "{% endif %}]{% endfor %}{{ tools | tojson if tools }}{# </think> #}";
constexpr std::string_view kTool =
    R"("tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}])";

std::unique_ptr<GenerationCall> response_call(const TestServedModel& model, const std::string& body) {
  auto call = model.response(body);
  EXPECT_TRUE(call.ok()) << call.error().message;
  return call.ok() ? std::move(call).value() : nullptr;
}

std::string prompt_of_response(const TestServedModel& model, const std::string& body) {
  const auto call = response_call(model, body);
  return call == nullptr ? "refused"
                         : model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
}

// The names of the events, and everything that their streams of text add up to.
std::string event_names(const std::string& events) {
  std::string names;
  for (size_t at = 0; (at = events.find("event: ", at)) != std::string::npos; ++at) {
    names += events.substr(at + 7, events.find('\n', at) - at - 7) + "\n";
  }
  return names;
}

std::string answer_in_events(const TestServedModel& model, GenerationCall& call,
                             std::vector<std::string> texts) {
  std::string events, whole;
  call.start(events);
  for (const std::string& text : texts) {
    call.add(0, delta_of(model, text), events);
    whole += text;
  }
  call.add(0, last_delta(whole, model.tokens(whole)), events);
  return events;
}

TEST(Responses, ReadTheirItems) {
  const TestServedModel model(kThinker);
  EXPECT_EQ(prompt_of_response(model, R"({"input":"Hi","instructions":"Be brief."})"),
            "[system:Be brief.][user:Hi]");
  EXPECT_EQ(
      prompt_of_response(model, R"({"input":[
      {"role":"developer","content":[{"type":"input_text","text":"s"}]},
      {"type":"message","role":"user","content":"u"},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"why"}]},
      {"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]},
      {"type":"function_call","call_id":"1","name":"f","arguments":"{\"x\":1}"},
      {"type":"function_call","call_id":"2","name":"f","arguments":""},
      {"type":"function_call_output","call_id":"1","output":"one"},
      {"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"two"}]},
      {"role":"user","content":"go on"}]})"),
      "[system:s][user:u][assistant:(why)a<tool_call>1 f {\"x\": 1}</tool_call><tool_call>2 f {}</tool_call>]"
      "[tool:one for 1][tool:two for 2][user:go on]");
  EXPECT_THAT(prompt_of_response(model, R"({"input":"Hi",)" + std::string(kTool) + "}"),
              HasSubstr(R"([{"type": "function", "function": {"name": "f", "description": "d",)"));
}

TEST(Responses, NameWhatTheyRefuse) {
  const TestServedModel model;
  const auto param = [&](const std::string& body) {
    const auto call = model.response(body);
    return call.ok() ? "accepted" : call.error().param;
  };
  EXPECT_EQ(param(R"({})"), "input");
  EXPECT_EQ(param(R"({"input":[]})"), "input");
  EXPECT_EQ(param(R"({"input":[{"type":"web_search_call"}]})"), "input");
  EXPECT_EQ(param(R"({"input":[{"type":"nonsense"}]})"), "input[0].type");
  EXPECT_EQ(param(R"({"input":[{"id":"msg_1"}]})"), "input[0]");
  EXPECT_EQ(param(R"({"input":[{"role":"user","content":[{"type":"input_file"}]}]})"),
            "input[0].content[0].type");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"type":"custom"}]})"), "tools[0].name");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"type":"namespace","name":"n"}]})"), "tools[0].tools");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function"}]}]})"),
            "tools[0].tools[0].name");
  EXPECT_EQ(param(R"({"input":"x","include":["message.output_text.logprobs"]})"), "include[0]");
  EXPECT_EQ(param(R"({"input":"x","max_output_tokens":0})"), "max_output_tokens");
  EXPECT_EQ(param(R"({"input":"x","max_output_tokens":-1})"), "accepted");
  EXPECT_EQ(
      param(
          R"({"input":"x",)" + std::string(kTool) +
          R"(,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}})"),
      "tool_choice.tools[0].name");
  EXPECT_EQ(param(R"({"input":"x","tools":[{"type":"web_search"}]})"), "accepted");
  EXPECT_EQ(param(R"({"input":"x","background":true})"), "background");
  EXPECT_EQ(param(R"({"input":"x","n":2})"), "n");
  EXPECT_EQ(param(R"({"input":"x","messages":[]})"), "messages");
  EXPECT_EQ(param(R"({"input":"x","speculative":{"trace":"summary"}})"), "speculative.trace");
  EXPECT_EQ(param(R"({"input":"x","previous_response_id":"resp_no"})"), "previous_response_id");
  EXPECT_EQ(
      param(R"({"input":"x","include":["reasoning.encrypted_content"],"store":false,"truncation":"disabled",
      "reasoning":{"effort":"low","summary":"auto"},"text":{"format":{"type":"text"},"verbosity":"low"},
      "parallel_tool_calls":true,"prompt_cache_key":"k","stream":true,"stream_options":{"include_obfuscation":false}})"),
      "accepted");
}

// The tools that Codex lists, and what they leave in the conversation.
constexpr std::string_view kCodexTools = R"("tools":[
    {"type":"function","name":"shell","strict":false,"parameters":{"type":"object"}},
    {"type":"namespace","name":"mcp__docs__","description":"d","tools":[
      {"type":"function","name":"search","defer_loading":false,"parameters":{"type":"object"}}]},
    {"type":"custom","name":"apply_patch","description":"Edits.","format":
      {"type":"grammar","syntax":"lark","definition":"start: /x/"}},
    {"type":"tool_search","execution":"client","description":"Finds.","parameters":{"type":"object"}},
    {"type":"web_search"},{"type":"local_shell"},{"type":"newer_than_this_server"}])";

TEST(Responses, ShowEveryToolThatTheClientRuns) {
  const TestServedModel model(kThinker);
  const auto call = response_call(model, R"({"input":"Hi",)" + std::string(kCodexTools) + "}");
  const std::string prompt = model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
  for (const char* name : {"shell", "mcp__docs__search", "apply_patch", "tool_search"})
    EXPECT_THAT(prompt, HasSubstr("\"name\": \"" + std::string(name) + "\"")) << name;
  EXPECT_THAT(prompt, HasSubstr("The input follows this grammar (lark):\\nstart: /x/"));
  EXPECT_THAT(call->ignored_fields(), testing::ElementsAre("tools[4]", "tools[5]", "tools[6]"));
}

TEST(Responses, AnswerWithTheItemOfTheTool) {
  const TestServedModel model(kThinker);
  const auto call = response_call(model, R"({"input":"Hi","stream":true,)" + std::string(kCodexTools) + "}");
  const std::string events = answer_in_events(
      model, *call,
      {"<tool_call>{\"name\": \"apply_patch\", \"arguments\": {\"input\": \"a\\n\\\"b\\\"\"}}</tool_call>",
       "<tool_call>{\"name\": \"tool_search\", \"arguments\": {\"query\": \"q\"}}</tool_call>",
       "<tool_call>{\"name\": \"mcp__docs__search\", \"arguments\": {}}</tool_call>"});
  EXPECT_THAT(event_names(events),
              HasSubstr("response.output_item.added\nresponse.custom_tool_call_input.delta\n"
                        "response.custom_tool_call_input.done\nresponse.output_item.done\n"
                        "response.output_item.added\nresponse.output_item.done\n"));
  EXPECT_THAT(events, HasSubstr(R"("type":"custom_tool_call","call_id":")"));
  EXPECT_THAT(events, HasSubstr(R"("name":"apply_patch","input":"a\n\"b\"")"));
  EXPECT_THAT(events, HasSubstr(R"("execution":"client","arguments":{"query": "q"})"));
  EXPECT_THAT(events, HasSubstr(R"("name":"mcp__docs__search","arguments":"{}")"));
}

TEST(Responses, ReadTheHistoriesOfCodex) {
  const TestServedModel model(kThinker);
  const auto call = response_call(model, R"({"input":[
      {"type":"message","role":"user","content":"u"},
      {"type":"custom_tool_call","call_id":"1","name":"apply_patch","input":"p\"q"},
      {"type":"custom_tool_call_output","call_id":"1","output":"done"},
      {"type":"tool_search_call","call_id":"2","execution":"client","arguments":{"query":"x"}},
      {"type":"tool_search_output","call_id":"2","execution":"client","status":"completed","tools":[
        {"type":"namespace","name":"mcp__m__","description":"d","tools":[{"type":"function","name":"g"}]}]},
      {"type":"web_search_call","id":"ws_1","status":"completed"},
      {"type":"function_call","call_id":"3","namespace":"mcp__m__","name":"g","arguments":"{}"},
      {"type":"function_call_output","call_id":"3","output":"r"}],)" +
                                             std::string(kTool) + "}");
  const std::string prompt = model.context().model->tokenizer->decode(call->requests()[0].prompt, false);
  EXPECT_THAT(prompt,
              HasSubstr(R"(<tool_call>1 apply_patch {"input": "p\"q"}</tool_call>][tool:done for 1])"));
  EXPECT_THAT(prompt, HasSubstr(R"(<tool_call>2 tool_search {"query": "x"}</tool_call>][tool:[{)"));
  EXPECT_THAT(prompt, HasSubstr("<tool_call>3 mcp__m__g {}</tool_call>][tool:r for 3]"));
  EXPECT_THAT(prompt, HasSubstr(R"("name": "mcp__m__g")"));
  EXPECT_THAT(call->ignored_fields(), testing::ElementsAre("input[5]"));
}

TEST(Responses, AllowSomeOfTheirTools) {
  const TestServedModel model(kThinker);
  const auto prompt_with = [&](const std::string& choice) {
    return prompt_of_response(
        model, R"({"input":"Hi",)" + std::string(kCodexTools) + R"(,"tool_choice":)" + choice + "}");
  };
  const std::string some = prompt_with(
      R"({"type":"allowed_tools","mode":"required","tools":[{"type":"custom","name":"apply_patch"},{"type":"web_search"}]})");
  EXPECT_THAT(some, HasSubstr("apply_patch"));
  EXPECT_THAT(some, Not(HasSubstr("shell")));
  EXPECT_THAT(prompt_with(R"({"type":"allowed_tools","mode":"auto","tools":[]})"), Not(HasSubstr("shell")));
}

TEST(Responses, StreamTextCallsAndReasoning) {
  const TestServedModel model(kThinker);
  const auto call = response_call(model, R"({"input":"Hi","stream":true,)" + std::string(kTool) + "}");
  const std::string events =
      answer_in_events(model, *call,
                       {"<think>So.</think>\n\nHello", " you",
                        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"", ": 1}}</tool_call>"});
  EXPECT_EQ(event_names(events),
            "response.created\nresponse.in_progress\n"
            "response.output_item.added\nresponse.content_part.added\nresponse.reasoning_text.delta\n"
            "response.reasoning_text.done\nresponse.content_part.done\nresponse.output_item.done\n"
            "response.output_item.added\nresponse.content_part.added\nresponse.output_text.delta\n"
            "response.output_text.delta\nresponse.output_text.done\nresponse.content_part.done\n"
            "response.output_item.done\n"
            "response.output_item.added\nresponse.function_call_arguments.delta\n"
            "response.function_call_arguments.delta\nresponse.function_call_arguments.done\n"
            "response.output_item.done\nresponse.completed\n");
  EXPECT_THAT(events, HasSubstr(R"("sequence_number":20,)"));
  EXPECT_THAT(events, HasSubstr(R"("name":"f","arguments":"{\"a\": 1}")"));
  EXPECT_THAT(events,
              HasSubstr(R"({"type":"output_text","text":"Hello you","annotations":[],"logprobs":[]})"));
}

TEST(Responses, ContinueOneAnother) {
  TestServedModel model(kThinker);
  const auto first =
      response_call(model, R"({"input":"Hi","instructions":"once",)" + std::string(kTool) + "}");
  std::string none;
  first->add(0, delta_of(model, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"), none);
  first->add(0, last_delta("", {}), none);
  const std::string body = first->body();
  EXPECT_THAT(
      body, HasSubstr(R"("id":"resp_abc","object":"response","created_at":1700000001,"status":"completed")"));
  EXPECT_THAT(body, HasSubstr(R"("type":"function_call","call_id":")"));
  const size_t at = body.find("\"call_id\":\"") + 11;
  const std::string id = body.substr(at, body.find('"', at) - at);
  model.set_id("def");
  EXPECT_EQ(prompt_of_response(model, R"({"previous_response_id":"resp_abc","input":[
      {"type":"function_call_output","call_id":")" +
                                          id + R"(","output":"ok"}]})"),
            "[user:Hi][assistant:<tool_call>" + id + " f {}</tool_call>][tool:ok for " + id + "]");
}

TEST(Responses, AreNotKeptWhereTheClientSaysSo) {
  const TestServedModel model(kThinker);
  const auto call = response_call(model, R"({"input":"Hi","store":false})");
  std::string none;
  call->add(0, last_delta("", {}), none);
  EXPECT_EQ(model.response(R"({"input":"x","previous_response_id":"resp_abc"})").error().status, 404);
}

TEST(Responses, TellWhyTheyAreIncomplete) {
  const TestServedModel model;
  const auto call = response_call(model, R"({"input":"Hi","max_output_tokens":1})");
  std::string none;
  call->add(0, delta_of(model, "Once"), none);
  call->add(0, last_delta("Once", model.tokens("Once"), FinishReason::kLength), none);
  EXPECT_THAT(call->body(), HasSubstr(R"("status":"incomplete")"));
  EXPECT_THAT(call->body(), HasSubstr(R"("incomplete_details":{"reason":"max_output_tokens"})"));
  EXPECT_THAT(call->error_events({.message = "m"}), HasSubstr("event: error\ndata: {\"type\":\"error\""));
}

TEST(Responses, CountTheirTokens) {
  const TestServedModel model;
  const ServedModel& served = *model.context().model;
  const auto count = response_tokens_body(R"({"input":"Hi"})", served);
  ASSERT_TRUE(count.ok()) << count.error().message;
  const auto chat = chat_tokens_body(R"({"messages":[{"role":"user","content":"Hi"}]})", served);
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(count->substr(count->rfind(':')), chat->substr(chat->rfind(':')));
}

}  // namespace
}  // namespace outrider
