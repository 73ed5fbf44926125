// SPDX-License-Identifier: Apache-2.0
// Conversations that templates refuse or hide, as they are rewritten.
#include "server/api/requests/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/answers/test_model.h"
#include "server/api/requests/chat_request.h"

namespace outrider {
namespace {

using testing::HasSubstr;

// The prompt for the messages, on one line: '/' for line breaks.
std::string shown(std::string_view chat_template, const std::string& messages) {
  const TestServedModel model(chat_template);
  const auto parsed = RequestBody::parse(
      R"({"tools":[{"type":"function","function":{"name":"f"}}],"messages":[)" + messages + "]}", 64);
  EXPECT_TRUE(parsed.ok()) << messages;
  const auto prompt = make_chat_prompt(parsed->root(), *model.context().model, {});
  std::string text = prompt.ok() ? prompt->text : "refused: " + prompt.error().message;
  std::replace(text.begin(), text.end(), '\n', '/');
  return text;
}

// `text` with double quotes for single ones.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return text;
}

std::string said(const std::string& role, const std::string& text) {
  return quoted("{'role':'" + role + "','content':'" + text + "'}");
}

std::string called(const std::string& calls, const std::string& more = "") {
  return quoted("{'role':'assistant'," + more + "'tool_calls':[") + calls + "]}";
}

std::string call_of(const std::string& id, const std::string& number) {
  const std::string function = "{'name':'f','arguments':{'a': " + number + "}}";
  return quoted("{'id':'" + id + "','type':'function','function':" + function + "}");
}

std::string result_of(const std::string& id, const std::string& text) {
  return quoted("{'role':'tool','tool_call_id':'" + id + "','content':'" + text + "'}");
}

constexpr std::string_view kShownTools = "{{ tools | tojson if tools }}";

// Shows all, and refuses what the condition says.
std::string refusing(const std::string& condition) {
  return "{% for m in messages %}{% if " + condition +
         " %}{{ raise_exception('no') }}{% endif %}[{{ m.role }}:{{ m.thinking or '' }}{{ m.content or '' }}"
         "{% for c in m.tool_calls or [] %}{{ c.id }}={{ c.function.arguments | tojson }}{% endfor %}"
         "{{ m.tool_call_id }}]{% endfor %}" +
         std::string(kShownTools);
}

std::string after_tools(const std::string& text) { return text.substr(0, text.rfind("[{\"type\"")); }

TEST(History, LateSystemMessagesBecomeTheUsers) {
  const std::string first = refusing("m.role == 'system' and not loop.first");
  const std::string begin =
      said("system", "s") + "," + said("user", "u") + "," + said("assistant", "a") + ",";
  EXPECT_EQ(after_tools(shown(first, begin + said("system", "late") + "," + said("user", "go"))),
            "[system:s][user:u][assistant:a][user:late//go]");
  EXPECT_EQ(after_tools(shown(first, begin + said("user", "go") + "," + said("system", "late"))),
            "[system:s][user:u][assistant:a][user:go//late]");
  EXPECT_EQ(after_tools(shown(first, begin + said("system", "late") + "," + said("assistant", "b"))),
            "[system:s][user:u][assistant:a][user:late][assistant:b]");
  EXPECT_EQ(
      after_tools(shown(first, said("developer", "s") + "," + said("system", "t") + "," + said("user", "u"))),
      "[system:s//t][user:u]");
  // A template that hides them is no better, and one that shows them keeps their place.
  const std::string hiding =
      "{% for m in messages %}{% if m.role != 'system' or loop.first %}[{{ m.role }}:{{ m.content }}]{% "
      "endif %}"
      "{% endfor %}" +
      std::string(kShownTools);
  EXPECT_THAT(shown(hiding, begin + said("system", "late") + "," + said("user", "go")),
              HasSubstr("[user:late//go]"));
  EXPECT_THAT(shown(refusing("false"), begin + said("system", "late") + "," + said("user", "go")),
              HasSubstr("[system:late][user:go]"));
}

TEST(History, NeighboursBecomeOneMessageWhereRolesTakeTurns) {
  const std::string turns = refusing("(m.role == 'user') != (loop.index0 % 2 == 0)");
  EXPECT_EQ(
      after_tools(shown(turns, said("developer", "s") + "," + said("user", "x") + "," + said("user", "y"))),
      "[user:s/"
      "/x//y]");
  EXPECT_THAT(shown(turns, said("user", "x") + "," + said("assistant", "a") + "," + said("assistant", "b")),
              HasSubstr("[user:"));
  EXPECT_THAT(shown(turns, said("user", "x") + "," + said("assistant", "a") + "," + said("assistant", "b")),
              HasSubstr("][assistant:a//b]"));
  EXPECT_THAT(shown(turns, said("assistant", "a") + "," + said("user", "x")),
              HasSubstr("[assistant:a][user:x]"));
  EXPECT_EQ(after_tools(shown(refusing("false"), said("user", "x") + "," + said("user", "y"))),
            "[user:x][user:y]");
}

TEST(History, ForeignIdsAreReplacedAlike) {
  const std::string nine = refusing(
      "m.role == 'tool' and m.tool_call_id | length != 9 or m.tool_calls and m.tool_calls[0].id | length != "
      "9");
  for (const std::string id : {"call_AbCdEfGhIjKlMnOpQrStUvWx", "toolu_01AbCdEfGh", "x", ""}) {
    const std::string text = after_tools(
        shown(nine, said("user", "u") + "," + called(call_of(id, "1")) + "," + result_of(id, "r")));
    const std::string prefix = "[user:u][assistant:";
    ASSERT_TRUE(text.starts_with(prefix)) << text;
    const std::string replaced = text.substr(prefix.size(), 9);
    EXPECT_EQ(text, prefix + replaced + "={\"a\": 1}][tool:r" + replaced + "]") << id;
  }
  EXPECT_THAT(shown(nine, said("user", "u") + "," + called(call_of("abcdefghi", "1")) + "," +
                              result_of("abcdefghi", "r")),
              HasSubstr("[tool:rabcdefghi]"));
}

TEST(History, SeveralCallsFollowOneAnotherWhereOneIsShown) {
  const std::string messages =
      said("user", "u") + "," +
      called(call_of("1", "1") + "," + call_of("2", "2"), R"("content":"I look.",)") + "," +
      result_of("2", "two") + "," + result_of("1", "one");
  const std::string expected =
      "[user:u][assistant:I look.1={\"a\": 1}][tool:one1][assistant:2={\"a\": 2}][tool:two2]";
  EXPECT_EQ(after_tools(shown(refusing("m.tool_calls and m.tool_calls | length != 1"), messages)), expected);
  // gpt-oss's template hides all but the first.
  std::string hiding = refusing("false");
  const std::string loop = "m.tool_calls or []";
  EXPECT_EQ(after_tools(
                shown(hiding.replace(hiding.find(loop), loop.size(), "(m.tool_calls or [])[:1]"), messages)),
            expected);
}

TEST(History, ResultsWithoutCallsAreTold) {
  const std::string strict = "{% set ns = namespace(c=false) %}" + refusing("m.role == 'tool' and not ns.c");
  std::string known = strict;
  const std::string end = "{{ m.tool_call_id }}]";
  known.replace(known.find(end), end.size(), end + "{% if m.tool_calls %}{% set ns.c = true %}{% endif %}");
  EXPECT_EQ(
      after_tools(shown(known, said("user", "u") + "," + result_of("9", "r") + "," + said("user", "go"))),
      "[user:u][user:Result of the call: r//go]");
}

TEST(History, ThinkingReachesTemplates) {
  for (const std::string name : {"reasoning_content", "thinking", "reasoning"}) {
    const std::string messages = said("user", "u") + "," +
                                 called(call_of("1", "1"), "\"" + name + "\":\"THOUGHT\",") + "," +
                                 result_of("1", "r");
    EXPECT_THAT(shown(refusing("false"), messages), HasSubstr("[assistant:THOUGHT1="));
    const std::string parts =
        "{% for m in messages %}[{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content or [] %}{% if p.type == 'thinking' %}<{{ p.thinking }}>{% else %}{{ p.text }}"
        "{% endif %}{% endfor %}{% endif %}{{ m.tool_calls | tojson if m.tool_calls }}]{% endfor %}" +
        std::string(kShownTools);
    EXPECT_THAT(shown(parts, messages), HasSubstr("[assistant:<THOUGHT>[{"));
  }
  // gpt-oss's template refuses a text beside thinking and a call.
  EXPECT_THAT(shown(refusing("m.tool_calls and m.content and m.thinking"),
                    said("user", "u") + "," +
                        called(call_of("1", "1"), R"("content":"I look.","reasoning_content":"Why.",)") +
                        "," + result_of("1", "r")),
              HasSubstr("[assistant:Why.//I look.1="));
}

TEST(History, PartsAreTextAndThinking) {
  const std::string user = quoted(
      "{'role':'user','content':[{'type':'text','text':'a'},{'type':'image_url',"
      "'image_url':{'url':'data:'}},{'type':'text','text':'b'}]}");
  const std::string assistant = quoted(
      "{'role':'assistant','content':[{'type':'thinking','thinking':[{'type':'text','text':'why'}]},"
      "{'type':'text','text':'c'}]}");
  EXPECT_EQ(after_tools(shown(refusing("false"), user + "," + assistant)), "[user:a/b][assistant:whyc]");
  const auto parsed = RequestBody::parse("{\"messages\":[" + user + "]}", 64);
  const TestServedModel model;
  std::vector<std::string> ignored;
  ASSERT_TRUE(make_chat_prompt(parsed->root(), *model.context().model, {}, &ignored).ok());
  EXPECT_THAT(ignored, testing::ElementsAre("messages[0].content[1]"));
}

// Refused in a way that no probe knows: as much as necessary becomes text.
TEST(History, WhatIsStillRefusedBecomesText) {
  EXPECT_THAT(shown(refusing("m.tool_calls and messages | length > 4"),
                    said("user", "u") + "," + called(call_of("1", "1")) + "," + result_of("1", "r") + "," +
                        said("assistant", "a") + "," + said("user", "v")),
              HasSubstr(R"([assistant:{"name": "f", "arguments": {"a":1}}][user:Result of f: r])"));
}

}  // namespace
}  // namespace outrider
