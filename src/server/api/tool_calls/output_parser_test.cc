// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/output_parser.h"

#include <gtest/gtest.h>

#include "server/api/tool_calls/output_test_data.h"

namespace outrider {
namespace {

constexpr std::string_view kHermes = "... <tool_call> ...";
constexpr std::string_view kMistral = "... [TOOL_CALLS] ...";
constexpr std::string_view kLlama = "... <|python_tag|> ...";
constexpr std::string_view kDeepSeek = "... <｜tool▁calls▁begin｜><｜tool▁call▁begin｜> ...";
constexpr std::string_view kQwenCoder = "... <tool_call>\\n<function=f>\\n<parameter=x> ...";

void expect_parsed(std::string_view chat_template, std::string_view text, const std::string& expected) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
    EXPECT_EQ(parsed(chat_template, text, piece), expected) << text << " in pieces of " << piece;
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
  expect_parsed(kHermes, "<tool_call>" + add, call);  // the end of the output closes the call
  expect_parsed(kMistral, "[TOOL_CALLS] [" + add + ", {\"arguments\": {}, \"name\": \"now\"}]",
                call + "|now({})");
  expect_parsed(kMistral, "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {}, \"id\": \"123456789\"}]",
                "|add({})");
  expect_parsed(kLlama, R"({"name": "add", "parameters": {"x": "ü\"{\\"}})", R"(|add({"x": "ü\"{\\"}))");
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

// "<｜tool▁X｜>"
std::string mark(const std::string& what) { return "<｜tool▁" + what + "｜>"; }

std::string deepseek_call(const std::string& name, const std::string& arguments) {
  return mark("call▁begin") + "function" + mark("sep") + name + "\n```json\n" + arguments + "\n```" +
         mark("call▁end");
}

TEST(ToolCallParser, FindsDeepSeeksCalls) {
  const std::string arguments = R"({"a": 1, "b": [2, "}\"`\\"]})";
  const std::string begin = mark("calls▁begin"), end = mark("calls▁end");
  const std::string add = deepseek_call("add", arguments), now = deepseek_call("now", "{}");
  const std::string call = "|add(" + arguments + ")";
  expect_parsed(kDeepSeek, begin + add + end, call);
  expect_parsed(kDeepSeek, "I add.\n\n" + begin + add + "\n" + now + end, "I add." + call + "|now({})");
  // Newer models write no type and no fence.
  const std::string newer = mark("call▁begin") + "add" + mark("sep") + arguments + mark("call▁end");
  expect_parsed(kDeepSeek, begin + newer + newer + end, call + call);
  // The end of the output closes the call anywhere after its arguments.
  for (const size_t cut : {end.size(), end.size() + 5, end.size() + mark("call▁end").size() + 4}) {
    const std::string whole = begin + add + end;
    expect_parsed(kDeepSeek, whole.substr(0, whole.size() - cut), call);
  }
}

TEST(ToolCallParser, LeavesAloneWhatDeepSeekDoesNotCallSo) {
  const std::string begin = mark("calls▁begin"), call = mark("call▁begin"), sep = mark("sep");
  for (const std::string& text :
       {begin, begin + "x", begin + call, begin + call + "function",
        begin + call + "function" + sep + "add\n", begin + deepseek_call("other", "{}"),
        begin + deepseek_call("add", "[1]"), begin + call + "function" + sep + "add\n```python\n{}",
        begin + call + std::string(300, 'x') + sep, call + "function" + sep + "add\n{}",
        std::string("<｜tool▁calls"), std::string("a ｜> b")}) {
    EXPECT_EQ(parsed(kDeepSeek, text, 1), text);
    EXPECT_EQ(parsed(kDeepSeek, text, 1000), text);
  }
  EXPECT_EQ(parsed(kDeepSeek, begin + call + "function" + sep + "add\n{\"a\": 1]", 1), "]|add({\"a\": 1})");
  // Text after a valid call stays content.
  EXPECT_EQ(parsed(kDeepSeek, begin + deepseek_call("now", "{}") + "And more.", 2), "And more.|now({})");
}

std::string tagged_call(const std::string& name,
                        const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text = "<tool_call>\n<function=" + name + ">\n";
  for (const auto& [key, value] : values) text += "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  return text + "</function>\n</tool_call>";
}

TEST(ToolCallParser, FindsQwenCodersCalls) {
  expect_parsed(kQwenCoder, "Now.\n" + tagged_call("now", {}), "Now.|now({})");
  expect_parsed(kQwenCoder, tagged_call("add", {{"a", "12"}, {"s", "12"}}), R"(|add({"a": 12, "s": "12"}))");
  expect_parsed(kQwenCoder, tagged_call("now", {}) + "\n" + tagged_call("add", {{"s", "x"}}),
                R"(|now({})|add({"s": "x"}))");
  // The value is on one line and has no end tag.
  expect_parsed(kQwenCoder, "<tool_call><function=add><parameter=a>3</parameter></function>",
                R"(|add({"a": 3}))");
  // Any text between the lines of a string belongs to it.
  expect_parsed(kQwenCoder,
                tagged_call("add", {{"s", "if (a < b) {\n\tsay(\"ü\\\\\");\n}\n"}, {"l", "</parameter"}}),
                R"(|add({"s": "if (a < b) {\n\u0009say(\"ü\\\\\");\n}\n", "l": "</parameter"}))");
  expect_parsed(kQwenCoder, tagged_call("add", {{"s", ""}, {"l", "\n"}}), R"(|add({"s": "", "l": "\n"}))");
}

TEST(ToolCallParser, TypesQwenCodersValuesByTheSchema) {
  const std::pair<std::pair<std::string, std::string>, std::string> kCases[] = {
      {{"a", "-3"}, "-3"},
      {{"a", "three"}, R"("three")"},
      {{"b", " [1, {\"x\": \"]\"}] "}, R"([1, {"x": "]"}])"},
      {{"b", "[1,"}, R"("[1,")"},
      {{"s", "null"}, R"("null")"},
      {{"t", "true"}, "true"},
      {{"t", "False"}, "false"},
      {{"o", "2.5"}, "2.5"},
      {{"o", "None"}, "null"},
      {{"o", "true"}, R"("true")"},
      {{"e", "1"}, R"("1")"},
      {{"m", "1"}, "1"},
      {{"m", "1x"}, R"("1x")"},
      {{"r", "{\"x\": 1}"}, R"({"x": 1})"},
      {{"u", "5"}, R"("5")"},
      {{"l", "null"}, "null"},
      {{"l", "5"}, R"("5")"},
      {{"unknown", "5"}, R"("5")"},
  };
  for (const auto& [value, json] : kCases) {
    expect_parsed(kQwenCoder, tagged_call("add", {value}), "|add({\"" + value.first + "\": " + json + "})");
  }
}

TEST(ToolCallParser, LeavesAloneWhatQwenCoderDoesNotCallSo) {
  const std::string name = "<tool_call>\n<function=add>";
  for (const std::string& text :
       {std::string("a <tool_call> b"), std::string("<tool_call>{\"name\": \"add\"}"),
        tagged_call("other", {}), std::string("<tool_call>\n<function=add"),
        "<tool_call><function=" + std::string(300, 'x') + ">", name + "text</function>",
        name + "<parameter=a>1", name + "<parameter=a>1</parameter>"}) {
    EXPECT_EQ(parsed(kQwenCoder, text, 1), text);
    EXPECT_EQ(parsed(kQwenCoder, text, 1000), text);
  }
}

// A long string, such as a file, is sent while it is generated.
TEST(ToolCallParser, StreamsQwenCodersStrings) {
  OutputParser parser(parts_of(kQwenCoder), test_tools());
  MessageDelta delta = parser.push("<tool_call>\n<function=add>\n<parameter=s>\none\n", false);
  ASSERT_EQ(delta.calls.size(), 1u);
  EXPECT_EQ(delta.calls[0].name, "add");
  EXPECT_EQ(delta.calls[0].arguments, R"({"s": "one)");  // the line break may belong to the tag
  delta = parser.push("two\n</par", false);
  EXPECT_EQ(delta.calls[0].arguments, R"(\ntwo)");
  delta = parser.push("ameter>\n</function>", false);
  EXPECT_EQ(delta.calls[0].arguments, R"("})");
}

TEST(ToolCallParser, TellsTheNameFirstAndArgumentsAsTheyCome) {
  OutputParser parser(parts_of(kHermes), test_tools());
  MessageDelta delta = parser.push("<tool_call>\n{\"name\": \"add\", \"arguments\": ", false);
  EXPECT_TRUE(delta.empty());
  delta = parser.push("{\"a\"", false);
  ASSERT_EQ(delta.calls.size(), 1u);
  EXPECT_EQ(delta.calls[0].name, "add");
  EXPECT_EQ(delta.calls[0].arguments, "{\"a\"");
  delta = parser.push(": 1}", false);
  ASSERT_EQ(delta.calls.size(), 1u);
  EXPECT_EQ(delta.calls[0].name, "");
  EXPECT_EQ(delta.calls[0].arguments, ": 1}");
}

TEST(ToolCallParser, KeepsToOneCallWhereAsked) {
  const std::string text =
      R"(<tool_call>{"name": "add", "arguments": {}}</tool_call><tool_call>{"name": "now", "arguments": {}}</tool_call>)";
  OutputParts parts = parts_of(kHermes);
  parts.parallel = false;
  EXPECT_EQ(parse(parts, text, 3).text(), "|add({})");
}

// "reasoning|content"
std::string split(std::string_view text, size_t piece, ThinkingState begins,
                  std::string_view chat_template = "</think>") {
  OutputParts parts = parts_of(chat_template, begins);
  parts.calls.clear();
  const Parsed parsed = parse(parts, text, piece);
  return parsed.all.reasoning + "|" + parsed.all.content;
}

TEST(Thinking, IsToldFromContent) {
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{5}, size_t{1000}}) {
    const auto after = [&](std::string_view text) { return split(text, piece, ThinkingState::kMayBegin); };
    const auto within = [&](std::string_view text) { return split(text, piece, ThinkingState::kOpen); };
    EXPECT_EQ(after("<think>\nOne.\n\nTwo.\n</think>\n\nHi <think>"), "One.\n\nTwo.|Hi <think>");
    EXPECT_EQ(after("\n<think></think>x"), "|x");
    EXPECT_EQ(after("Hi</think>"), "|Hi</think>");
    EXPECT_EQ(after("<thin"), "|<thin");
    EXPECT_EQ(within("a < b</think> c"), "a < b|c");
    EXPECT_EQ(within("never ends </thi"), "never ends </thi|");
    EXPECT_EQ(within("<think>\nagain</think>x"), "again|x");  // the model repeats the mark of the prompt
    EXPECT_EQ(within("<thing>y</think>x"), "<thing>y|x");
    EXPECT_EQ(split("<think>x</think>", piece, ThinkingState::kClosed), "|<think>x</think>");
  }
}

TEST(Thinking, HasTheMarksOfFamilies) {
  const auto split_by = [](std::string_view chat_template, std::string_view text) {
    return split(text, 3, ThinkingState::kMayBegin, chat_template);
  };
  EXPECT_EQ(split_by("[THINK]x[/THINK]", "[THINK]So.[/THINK]Hi"), "So.|Hi");
  EXPECT_EQ(split_by("<|channel>thought\nx<channel|>", "<|channel>thought\nSo.\n<channel|>Hi"), "So.|Hi");
  EXPECT_EQ(
      split_by("'Here is my response:'", "Here is my thought process:\nSo.\n\nHere is my response:\nHi"),
      "So.|Hi");
  EXPECT_EQ(find_thinking_form("<think>", "Hi"), nullptr);
  EXPECT_NE(find_thinking_form("no sign", "<|im_start|>assistant\n<think>\n"), nullptr);
}

TEST(Thinking, EndsWithACall) {
  const std::string chat_template = std::string(kHermes) + "</think>";
  const std::string now = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
  const auto parsed_as = [&](const std::string& text, size_t piece) {
    const Parsed parsed = parse(parts_of(chat_template, ThinkingState::kOpen), text, piece);
    return parsed.all.reasoning + "/" + parsed.text();
  };
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}}) {
    EXPECT_EQ(parsed_as("I look.\n" + now, piece), "I look./|now({})");
    EXPECT_EQ(parsed_as("I look.\n" + now + "\n" + now + "\n</think>\nDone", piece),
              "I look./Done|now({})|now({})");
    EXPECT_EQ(parsed_as("Not <tool_call> now.</think>Done", piece), "Not <tool_call> now./Done");
    EXPECT_EQ(parsed_as("<tool_call></think>Done", piece), "<tool_call>/Done");
    EXPECT_EQ(parsed_as("Odd <tool_call>{\"name\": 1}</think>" + now, piece),
              "Odd <tool_call>{\"name\": 1}/|now({})");
    // An argument may hold the mark.
    EXPECT_EQ(parsed_as("<tool_call>{\"name\": \"add\", \"arguments\": {\"s\": \"</think>\"}}", piece),
              "/|add({\"s\": \"</think>\"})");
  }
}

}  // namespace
}  // namespace outrider
