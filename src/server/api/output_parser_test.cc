// SPDX-License-Identifier: Apache-2.0
#include "server/api/output_parser.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

constexpr std::string_view kHermes = "... <tool_call> ...";
constexpr std::string_view kMistral = "... [TOOL_CALLS] ...";
constexpr std::string_view kLlama = "... <|python_tag|> ...";

// "content|name(arguments)|name(arguments)", the pieces of every call put together.
std::string parsed(std::string_view chat_template, std::string_view text, size_t piece, bool incremental,
                   bool parallel = true) {
  ToolCallParser parser(
      {.format = tool_format(chat_template), .incremental = incremental, .parallel = parallel},
      {{.name = "add", .parameters = {}, .path = {}}, {.name = "now", .parameters = {}, .path = {}}});
  OutputDelta all;
  const auto take = [&](OutputDelta delta) {
    all.content += delta.content;
    for (const auto& call : delta.calls) {
      if (!call.name.empty()) {
        EXPECT_EQ(call.index, static_cast<int>(all.calls.size()));
        all.calls.push_back(call);
      } else {
        EXPECT_EQ(call.index, static_cast<int>(all.calls.size()) - 1);
        all.calls.back().arguments += call.arguments;
      }
    }
  };
  for (size_t i = 0; i < text.size(); i += piece) {
    OutputDelta delta;
    parser.push(text.substr(i, piece), delta);
    take(delta);
  }
  OutputDelta delta;
  parser.finish(delta);
  take(delta);
  std::string result = all.content;
  for (const auto& call : all.calls) result += "|" + call.name + "(" + call.arguments + ")";
  return result;
}

void expect_parsed(std::string_view chat_template, std::string_view text, const std::string& expected) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
    for (const bool incremental : {false, true}) {
      EXPECT_EQ(parsed(chat_template, text, piece, incremental), expected)
          << text << " in pieces of " << piece << (incremental ? ", incremental" : "");
    }
  }
}

TEST(ToolCallParser, FindsCalls) {
  const std::string add = R"({"name": "add", "arguments": {"a": 1, "b": [2, "}"]}})";
  const std::string call = R"(|add({"a": 1, "b": [2, "}"]}))";
  expect_parsed(kHermes, "<tool_call>\n" + add + "\n</tool_call>", call);
  expect_parsed(kHermes, "Let me see.\n\n<tool_call>" + add + "</tool_call>\n", "Let me see." + call);
  expect_parsed(kHermes,
                "<tool_call>\n" + add + "\n</tool_call>\n<tool_call>\n{\"name\":\"now\"}\n</tool_call>",
                call + "|now({})");
  expect_parsed(kHermes, "<tool_call>" + add, call);  // the end of the output closes it
  expect_parsed(kMistral, "[TOOL_CALLS] [" + add + ", {\"arguments\": {}, \"name\": \"now\"}]",
                call + "|now({})");
  expect_parsed(kMistral, "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {}, \"id\": \"123456789\"}]",
                "|add({})");
  expect_parsed(kLlama, R"({"name": "add", "parameters": {"x": "ü\"{"}})", R"(|add({"x": "ü\"{"}))");
  expect_parsed(kLlama,
                R"(<|python_tag|>{"name": "add", "parameters": {}}; {"name": "now", "parameters": {}})",
                "|add({})|now({})");
  expect_parsed("plain", "\n " + add, call);
  expect_parsed("plain", "[" + add + "]", call);
  expect_parsed("plain", R"({"type": "function", "name": "now", "arguments": {}})", "|now({})");
  expect_parsed("plain", R"({"name": "now", "arguments": "{\"a\": 1}"})", R"(|now({"a": 1}))");
  expect_parsed("plain", R"({"arguments": {"a": -1.5e3}, "name": "now"})", R"(|now({"a": -1.5e3}))");
}

TEST(ToolCallParser, LeavesTheRestAlone) {
  for (const char* text :
       {"Hello.", "", "  two \n lines  ", "a < b and <tool_box>", "<tool_call", "<tool_call>",
        "<tool_call> not JSON", "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"n\": 1}</tool_call>", "<tool_call>{\"name\": 3, \"arguments\": {}}</tool_call>",
        "<tool_call>{]", "<tool_call>{\"name\" \"add\"}", "<tool_call>{\"name\": \"add\"",
        "<tool_call>{\"name\": \"add\", \"name\": \"add\"}"}) {
    expect_parsed(kHermes, text, text);
  }
  for (const char* text :
       {"{\"answer\": 42}", "{\"name\": \"Bob\", \"age\": 3}", "[1, 2]", "[", "{", "x {\"name\": \"add\"}",
        "Sure: {\"name\": \"add\", \"parameters\": {}}", "<|python", "<|python_tag|>print(1)"}) {
    expect_parsed(kLlama, text, text);
  }
  expect_parsed(kMistral, "[TOOL_CALLS] nothing", "[TOOL_CALLS] nothing");
}

TEST(ToolCallParser, TellsTheNameFirstAndArgumentsAsTheyCome) {
  ToolCallParser parser({.format = tool_format(kHermes), .incremental = true},
                        {{.name = "add", .parameters = {}, .path = {}}});
  OutputDelta delta;
  parser.push("<tool_call>\n{\"name\": \"add\", \"arguments\": ", delta);
  EXPECT_TRUE(delta.empty());
  parser.push("{\"a\"", delta);
  ASSERT_EQ(delta.calls.size(), 1u);
  EXPECT_EQ(delta.calls[0].name, "add");
  EXPECT_EQ(delta.calls[0].arguments, "{\"a\"");
  delta = {};
  parser.push(": 1}", delta);
  ASSERT_EQ(delta.calls.size(), 1u);
  EXPECT_EQ(delta.calls[0].name, "");
  EXPECT_EQ(delta.calls[0].arguments, ": 1}");
}

TEST(ToolCallParser, KeepsToOneCallWhereAsked) {
  const std::string text =
      R"(<tool_call>{"name": "add", "arguments": {}}</tool_call><tool_call>{"name": "now", "arguments": {}}</tool_call>)";
  for (const bool incremental : {false, true}) {
    EXPECT_EQ(parsed(kHermes, text, 3, incremental, /*parallel=*/false), "|add({})");
  }
}

// "reasoning|content"
std::string split(std::string_view text, size_t piece, bool is_inside) {
  ReasoningSplitter splitter(is_inside);
  std::string reasoning, content;
  for (size_t i = 0; i < text.size(); i += piece) splitter.push(text.substr(i, piece), reasoning, content);
  splitter.finish(reasoning, content);
  return reasoning + "|" + content;
}

TEST(ReasoningSplitter, TellsReasoningFromContent) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}}) {
    EXPECT_EQ(split("<think>\nOne.\n\nTwo.\n</think>\n\nHi <think>", piece, false),
              "One.\n\nTwo.|Hi <think>");
    EXPECT_EQ(split("\n<think></think>x", piece, false), "|x");
    EXPECT_EQ(split("Hi</think>", piece, false), "|Hi</think>");
    EXPECT_EQ(split("<thin", piece, false), "|<thin");
    EXPECT_EQ(split("a < b</think> c", piece, true), "a < b|c");
    EXPECT_EQ(split("never ends </thi", piece, true), "never ends </thi|");
  }
}

TEST(ToolFormat, IsFoundInTheTemplate) {
  EXPECT_EQ(tool_format(kHermes).name, "hermes");
  EXPECT_EQ(tool_format(kMistral).name, "mistral");
  EXPECT_EQ(tool_format(kLlama).name, "llama3");
  EXPECT_EQ(tool_format("").name, "plain");
}

}  // namespace
}  // namespace outrider
