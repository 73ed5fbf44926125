// SPDX-License-Identifier: Apache-2.0
// Demanded calls in the form of each family: they are what its model writes, and what is read again.
#include "server/api/tool_calls/call_grammar.h"

#include <gtest/gtest.h>

#include <random>

#include "base/sanitized.h"
#include "base/white_space.h"
#include "grammar/byte_automaton.h"
#include "grammar/test_grammars.h"
#include "server/api/tool_calls/form_cases.h"
#include "server/api/tool_calls/held_text.h"
#include "server/api/tool_calls/output_test_data.h"

namespace outrider {
namespace {

const std::string kNow = R"({"type":"object","properties":{}})";
const std::string kAdd =
    R"({"type":"object","properties":{"a":{"type":"integer","minimum":-20,"maximum":300},)"
    R"("s":{"type":"string","maxLength":16},"t":{"type":"boolean"},)"
    R"("o":{"anyOf":[{"enum":[1.5,7]},{"type":"null"}]},"e":{"enum":["red","it's"]},)"
    R"("l":{"anyOf":[{"enum":["x","y z"]},{"type":"null"}]},"p":{"type":"string","pattern":"^[a-f\n']{1,3}$"},)"
    R"("b":{"type":"array","items":{"type":["string","boolean"],"maxLength":4},"maxItems":3},)"
    R"("d":{"$ref":"#/$defs/point"}},"required":["a","s"],"additionalProperties":false,)"
    R"("$defs":{"point":{"type":"object","properties":{"y":{"type":"null"},"z":{"type":"string","maxLength":3}},)"
    R"("additionalProperties":false}}})";

std::shared_ptr<const Tokenizer> test_tokenizer() {
  static const auto kTokenizer =
      Tokenizer::create(
          read_tokenizer_json(std::string(OUTRIDER_SOURCE_DIR) + "/models/outrider-small").value())
          .value();
  return kTokenizer;
}

ToolUse demanding(ToolChoice choice, bool parallel = true) {
  ToolUse use;
  use.choice = choice;
  use.parallel = parallel;
  if (choice != ToolChoice::kNamed) use.tools.push_back({.name = "now", .parameters = kNow, .path = {}});
  use.tools.push_back({.name = "add", .parameters = kAdd, .path = {}});
  return use;
}

const CallForm& form_of(const FormCase& one) {
  const CallForm* form = find_call_form(one.chat_template, nullptr);
  return form == nullptr ? plain_call_form() : *form;
}

SharedGrammar grammar_of(const CallForm& form, const ToolUse& tools) {
  GrammarBuilder builder;
  std::vector<std::string> notes;
  const auto tokenizer = test_tokenizer();
  const auto calls = written_calls(builder, {.tokenizer = *tokenizer, .tools = tools, .notes = notes}, form);
  EXPECT_TRUE(calls.ok());
  return must(builder.build(*calls));
}

// The calls of a case, without the text before them.
std::string_view calls_of(const FormCase& one) {
  return without_leading_space(std::string_view(one.answer).substr(std::string_view(one.text).size()));
}

bool is_harmony(const FormCase& one) { return std::string_view(one.name) == "harmony"; }

TEST(CallGrammar, DemandedCallsAreTheFamilysOwn) {
  for (const FormCase& one : kFormCases) {
    if (is_harmony(one)) continue;  // its channels are a matter of constraints.cc
    const std::string_view calls = calls_of(one);
    const SharedGrammar several = grammar_of(form_of(one), demanding(ToolChoice::kRequired));
    const bool is_plain = &form_of(one) == &plain_call_form();  // the server asks for one call
    EXPECT_EQ(accepts(several, calls), !is_plain) << one.name << ": " << calls;
    EXPECT_FALSE(accepts(several, "So.")) << one.name;
    EXPECT_TRUE(!is_plain || accepts(several, calls.substr(0, calls.find('\n'))));
    EXPECT_FALSE(accepts(grammar_of(form_of(one), demanding(ToolChoice::kRequired, false)), calls))
        << one.name;
    EXPECT_FALSE(accepts(grammar_of(form_of(one), demanding(ToolChoice::kNamed)), calls)) << one.name;
  }
}

// A text of the grammar, chosen at random; it ends as soon as it may.
std::string random_text_of(const SharedGrammar& grammar, std::mt19937& random) {
  ByteAutomaton automaton(grammar, 1);
  ByteAutomaton::State state = automaton.start();
  std::string text;
  while (!automaton.may_end(state) && text.size() < 5000) {
    std::vector<uint8_t> choices;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.advance(state, static_cast<uint8_t>(byte)) != ByteAutomaton::kDead)
        choices.push_back(static_cast<uint8_t>(byte));
    }
    const uint8_t byte = choices[random() % choices.size()];
    text += static_cast<char>(byte);
    state = automaton.advance(state, byte);
  }
  return text;
}

TEST(CallGrammar, AllItsTextsAreReadAsCallsOfTheSchema) {
  const ToolUse tools = demanding(ToolChoice::kNamed);
  const SharedTools shared = std::make_shared<const std::vector<Tool>>(tools.tools);
  const SharedGrammar schema = must(grammar_of_json_schema(kAdd));
  std::mt19937 random(51);
  for (const FormCase& one : kFormCases) {
    if (is_harmony(one)) continue;
    const SharedGrammar grammar = grammar_of(form_of(one), tools);
    for (int run = 0; run < repetitions(100); ++run) {
      const std::string text = random_text_of(grammar, random);
      OutputParser parser(parts_of(one.chat_template), shared);
      MessageDelta all;
      take(parser.push(text, true), all);
      ASSERT_TRUE(parser.has_calls()) << one.name << ": " << text;
      ASSERT_EQ(all.calls.size(), 1u) << one.name << ": " << text;
      EXPECT_EQ(all.content, "") << one.name << ": " << text;
      ASSERT_TRUE(accepts(schema, all.calls[0].arguments))
          << one.name << ": " << text << " gave " << all.calls[0].arguments;
    }
  }
}

// After the mark of a form, a tool that is marked as strict holds the calls.
TEST(CallGrammar, CallsFollowTheMark) {
  for (const FormCase& one : kFormCases) {
    if (is_harmony(one)) continue;
    GrammarBuilder builder;
    std::vector<std::string> notes;
    const ToolUse tools = demanding(ToolChoice::kAuto);
    const auto tokenizer = test_tokenizer();
    const CallForm& form = form_of(one);
    const auto body =
        calls_after_mark(builder, {.tokenizer = *tokenizer, .tools = tools, .notes = notes}, form);
    ASSERT_TRUE(body.ok()) << one.name;
    ASSERT_EQ(body->has_value(), !std::string_view(one.text).empty()) << one.name;
    if (!body->has_value()) continue;
    const SharedGrammar grammar = must(builder.build(**body));
    std::string_view calls = calls_of(one);
    ASSERT_TRUE(calls.starts_with(form.open[0])) << one.name;
    calls.remove_prefix(form.open[0].size());
    if (form.spelling.order == CallSpelling::Order::kMarked)
      calls = trimmed(calls.substr(0, calls.find(form.open[0])));
    EXPECT_TRUE(accepts(grammar, calls)) << one.name << ": " << calls;
    std::string other(calls);
    other.replace(other.find("add"), 3, "sub");
    EXPECT_FALSE(accepts(grammar, other)) << one.name;
  }
}

// A schema that the marks cannot hold is called by the plain object.
TEST(CallGrammar, OtherSchemasUseThePlainObject) {
  ToolUse use;
  use.choice = ToolChoice::kRequired;
  use.tools.push_back(
      {.name = "now",
       .parameters = R"({"type":"object","properties":{"a":{"type":["string","integer"]}},"required":["a"]})",
       .path = {}});
  const SharedGrammar grammar = grammar_of(*find_call_form("<parameter=", nullptr), use);
  EXPECT_TRUE(accepts(grammar, R"({"name": "now", "arguments": {"a": "5"}})"));
  EXPECT_FALSE(
      accepts(grammar, "<tool_call>\n<function=now>\n<parameter=a>5</parameter></function></tool_call>"));
}

}  // namespace
}  // namespace outrider
