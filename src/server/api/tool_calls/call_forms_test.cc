// SPDX-License-Identifier: Apache-2.0
// Each form of calls: how it is recognised, and calls as the family's model writes them.
#include "server/api/tool_calls/call_forms.h"

#include <gtest/gtest.h>

#include "base/white_space.h"
#include "server/api/json_text.h"
#include "server/api/tool_calls/form_cases.h"
#include "server/api/tool_calls/output_test_data.h"

namespace outrider {
namespace {

std::string form_name(std::string_view chat_template) {
  const CallForm* form = find_call_form(chat_template, nullptr);
  return std::string(form == nullptr ? "plain" : form->name);
}

TEST(CallForms, AreRecognisedByTheirMarks) {
  for (const FormCase& one : kFormCases) EXPECT_EQ(form_name(one.chat_template), one.name);
}

TEST(CallForms, OfEachFamilyAreCalls) {
  for (const FormCase& one : kFormCases) {
    const std::string expected = std::string(one.text) + R"(|add({"a": 1, "s": "x, \"y\" {z}"})|now({}))";
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{10000}}) {
      const Parsed parsed = parse(parts_of(one.chat_template), one.answer, piece);
      EXPECT_EQ(parsed.text(), expected) << one.name << " in pieces of " << piece;
      EXPECT_TRUE(parsed.has_calls) << one.name;
    }
  }
}

// A client gets the same however the text is cut. Begun arguments end as JSON, and only an answer whose calls
// are complete has calls.
void expect_truth(const FormCase& one, std::string_view text) {
  const Parsed whole = parse(parts_of(one.chat_template), text, text.size() + 1);
  for (const size_t piece : {size_t{1}, size_t{3}}) {
    const Parsed parts = parse(parts_of(one.chat_template), text, piece);
    ASSERT_EQ(parts.text(), whole.text()) << one.name << ": " << text;
    ASSERT_EQ(parts.all.reasoning, whole.all.reasoning) << one.name << ": " << text;
    ASSERT_EQ(parts.has_calls, whole.has_calls) << one.name << ": " << text;
  }
  for (const auto& call : whole.all.calls)
    ASSERT_TRUE(is_json_object(call.arguments)) << one.name << ": " << text << " gave " << call.arguments;
  if (whole.all.calls.empty()) {
    ASSERT_FALSE(whole.has_calls);
    // Nothing but white space before what might have been a call is lost.
    size_t kept = 0, given = 0;
    for (const char c : whole.all.reasoning + whole.all.content) kept += is_json_space(c) ? 0 : 1;
    for (const char c : text) given += is_json_space(c) ? 0 : 1;
    const bool hides_headers = std::string_view(one.name) == "harmony";
    ASSERT_TRUE(kept == given || hides_headers) << one.name << ": " << text;
  }
}

TEST(CallForms, AgreeWhereverAnAnswerEnds) {
  for (const FormCase& one : kFormCases) {
    const std::string_view answer = one.answer;
    for (size_t length = 0; length <= answer.size(); ++length) expect_truth(one, answer.substr(0, length));
  }
}

// Answers with pieces left out, repeated and exchanged with pieces of other forms.
TEST(CallForms, AgreeOnBrokenAnswers) {
  uint64_t state = 51;
  const auto random = [&state](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % below);
  };
  for (int run = 0; run < 20000; ++run) {
    const FormCase& one = kFormCases[random(std::size(kFormCases))];
    std::string text = one.answer;
    for (size_t change = 0; change <= random(3); ++change) {
      const std::string_view other = kFormCases[random(std::size(kFormCases))].answer;
      const std::string piece(random(4) == 0
                                  ? other.substr(random(other.size()), random(20))
                                  : std::string_view(text).substr(random(text.size()), random(12)));
      const size_t place = random(text.size());
      text.replace(place, random(3) == 0 ? random(12) : 0, random(3) == 0 ? "" : piece);
      if (text.empty()) text = "x";
    }
    // A cut through a character would make JSON that is not UTF-8.
    std::erase_if(text, [](char c) { return (c & 0x80) != 0; });
    expect_truth(one, text);
    if (HasFatalFailure()) return;
  }
}

TEST(CallForms, ABrokenCallIsClosedAndTheRestIsText) {
  const auto of = [](std::string_view chat_template, std::string_view text) {
    const Parsed parsed = parse(parts_of(chat_template), text, 1);
    return parsed.text() + (parsed.has_calls ? "" : " broken");
  };
  EXPECT_EQ(of("<tool_call>", "<tool_call>{\"name\": \"add\", \"arguments\": {\"s\": \"x\", oops"),
            ", oops|add({\"s\": \"x\"}) broken");
  EXPECT_EQ(of("<parameter=", "<tool_call><function=add><parameter=s>x</parameter><parameter=l>y"),
            "<parameter=l>y|add({\"s\": \"x\"}) broken");
  EXPECT_EQ(of("<|tool_call_start|>", "<|tool_call_start|>[add(s='x', [1])]"),
            ", [1])]|add({\"s\": \"x\"}) broken");
}

// Models forget a mark, and a control token may be left out of the text.
TEST(CallForms, TheNextMarkIsEnough) {
  EXPECT_EQ(parsed("<parameter=",
                   "So.\n<function=add>\n<parameter=s>\nx\n</parameter>\n</function>\n</tool_call>", 1),
            R"(So.|add({"s": "x"}))");
  EXPECT_EQ(parsed("<parameter=", "Write <function=NAME> and <function=", 1),
            "Write <function=NAME> and <function=");
  for (const char* chat_template : {"[TOOL_CALLS]", "[TOOL_CALLS][ARGS]"})
    EXPECT_EQ(parsed(chat_template, "So.[TOOL_CALLS]add{\"a\": 1}[TOOL_CALLS]now{}", 1),
              R"(So.|add({"a": 1})|now({}))");
}

// An element that is slightly off is no argument.
TEST(CallForms, NamesOfArgumentsAreNames) {
  const std::string begin = "<tool_call>\n<function=add>\n", end = "</parameter>\n</function>\n</tool_call>";
  for (const std::string& text :
       {begin + "<parameter=b: [1]\n</parameter>\n<parameter=s>x" + end, begin + "<parameter=\n>x" + end,
        begin + "<parameter=s=>x" + end, begin + "<parameter=a b>x" + end, begin + "<parameter=>x" + end}) {
    EXPECT_EQ(parsed("<parameter=", text, 1), text);
  }
}

// The mark that ends a value may occur in it, and is sometimes left out.
TEST(CallForms, ValuesEndWhereTheCallGoesOn) {
  const std::string begin = "<tool_call>\n<function=add>\n<parameter=s>\n";
  EXPECT_EQ(parsed("<parameter=", begin + "A </parameter> here\n</parameter>\n</function>\n</tool_call>", 1),
            R"(|add({"s": "A </parameter> here"}))");
  EXPECT_EQ(parsed("<parameter=", begin + "A\n</function>\n</tool_call>", 1), R"(|add({"s": "A"}))");
  EXPECT_EQ(parsed("<arg_key>",
                   "<tool_call>add<arg_key>s</arg_key><arg_value></arg_value>x</arg_value></tool_call>", 1),
            R"(|add({"s": "</arg_value>x"}))");
}

TEST(CallForms, ReadPythonsValues) {
  const auto value = [](const std::string& text) {
    const std::string parsed_call =
        parsed("<|tool_call_start|>", "<|tool_call_start|>[add(s=" + text + ")]", 1);
    constexpr std::string_view kHead = "|add({\"s\": ";
    return parsed_call.starts_with(kHead)
               ? parsed_call.substr(kHead.size(), parsed_call.size() - kHead.size() - 2)
               : parsed_call;
  };
  const std::pair<const char*, const char*> kValues[] = {
      {"-1.5e3", "-1.5e3"},
      {"True", "true"},
      {"None", "null"},
      {"''", "\"\""},
      {"'''a'b''c'''", "\"a'b''c\""},
      {"\"\"\"x\ny\"\"\"", "\"x\\ny\""},
      {"'a\\n\\'\\x41\\u00e9\\U0001F600\\q'", "\"a\\n'Aé😀\\\\q\""},
      {"'\\ud83d\\ude00\\ud83dx'", "\"😀\xEF\xBF\xBDx\""},
      {"[1, (2, 'a'), [], {},]", "[1, [2, \"a\"], [], {}]"},
      {"{'k': {\"a b\": [True]}, 'l': 1}", "{\"k\": {\"a b\": [true]}, \"l\": 1}"},
  };
  for (const auto& [text, json] : kValues) EXPECT_EQ(value(text), json);
  for (const char* text : {"x", "print(1)", "1 + 1", "1e999", "{1: 2}", "'a' 'b'"})
    EXPECT_EQ(parsed("<|tool_call_start|>", "<|tool_call_start|>[now(s=" + std::string(text) + ")]", 1)
                  .find("\"s\": x"),
              std::string::npos);
}

TEST(CallForms, ReadGemmasValues) {
  const std::string text =
      "<|tool_call>call:add{s:<|\"|>a <|b <|\"|>,b:[<|\"|>x<|\"|>,{k:1,l:<|\"|><|\"|>}],t:true,o:null,u:bare "
      "text}"
      "<tool_call|>";
  EXPECT_EQ(
      parsed("<|tool_call>", text, 1),
      R"(|add({"s": "a <|b ", "b": ["x", {"k": 1, "l": ""}], "t": true, "o": null, "u": "bare text"}))");
}

TEST(CallForms, ChannelsHaveTheirParts) {
  const std::string chat_template = "<|channel|><|message|>";
  const auto answer = [&](std::string_view text) {
    const Parsed parsed = parse(parts_of(chat_template), text, 1);
    return parsed.all.reasoning + "/" + parsed.text();
  };
  EXPECT_EQ(
      answer("<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Hello!"),
      "Easy./Hello!");
  EXPECT_EQ(
      answer(
          "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>B<|end|>"),
      "A\nB/");
  EXPECT_EQ(answer(" to=functions.now<|channel|>commentary json<|message|><|call|>"), "/|now({})");
  EXPECT_EQ(answer("Plain text <|x"), "/Plain text <|x");
  OutputParts shown = parts_of(chat_template);
  shown.shows_thinking = true;
  EXPECT_EQ(
      parse(shown,
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
            1)
          .text(),
      "<|channel|>analysis<|message|>A<|end|>B");
  const std::string foreign = "<|channel|>commentary to=browser.open<|message|>{\"id\": 1}";
  EXPECT_EQ(answer(foreign + "<|call|>"), "/" + foreign);
}

}  // namespace
}  // namespace outrider
