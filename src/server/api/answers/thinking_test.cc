// SPDX-License-Identifier: Apache-2.0
// Forms, calls and control tokens of models that think before they answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/answers/message_parser.h"
#include "server/api/answers/test_model.h"

namespace outrider {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTurns =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ tools | tojson if tools }}{# <tool_call> </think> #}<|im_start|>assistant\n";
constexpr const char* kSchema =
    R"("response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object","properties":)"
    R"({"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}})";
constexpr const char* kForced =
    R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"now","parameters":)"
    R"({"type":"object","properties":{},"additionalProperties":false}}}])";

// How far the text fits the constraint of the request.
enum class Fit : uint8_t { kNot, kBeginning, kWhole };

Fit fit(const TestServedModel& model, const std::string& fields, std::string_view text) {
  const auto call = model.chat(R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}");
  EXPECT_TRUE(call.ok()) << call.error().message;
  TokenConstraint& constraint = *(*call)->requests()[0].constraint;
  TokenConstraint::State state = constraint.start();
  for (const TokenId token : model.tokens(text)) {
    if (state != TokenConstraint::kDead) state = constraint.advance(state, token);
  }
  if (state == TokenConstraint::kDead) return Fit::kNot;
  return constraint.is_complete(state) ? Fit::kWhole : Fit::kBeginning;
}

TEST(Thinking, FormsBeginAfterIt) {
  const TestServedModel open(std::string(kTurns) + "<think>\n{{ '' }}");
  EXPECT_EQ(fit(open, kSchema, "Let me think.</think>\n\n{\"a\": 1}"), Fit::kWhole);
  EXPECT_EQ(fit(open, kSchema, "{\"a\": 1}"), Fit::kBeginning);  // that is a thought
  EXPECT_EQ(fit(open, kSchema, "So.</think>Well"), Fit::kNot);
  const std::string closed = std::string("\"enable_thinking\":false,") + kSchema;
  EXPECT_EQ(fit(open, closed, "{\"a\": 1}"), Fit::kWhole);
  EXPECT_EQ(fit(open, closed, "Let me think."), Fit::kNot);
  // Where the prompt does not open it, the model may.
  const TestServedModel free(kTurns);
  EXPECT_EQ(fit(free, kSchema, "{\"a\": 1}"), Fit::kWhole);
  EXPECT_EQ(fit(free, kSchema, "<think>So.</think>{\"a\": 1}"), Fit::kWhole);
  EXPECT_EQ(fit(free, kSchema, "So."), Fit::kNot);
}

TEST(Thinking, ForcedCallsBeginAfterIt) {
  const TestServedModel open(std::string(kTurns) + "<think>\n{{ '' }}");
  const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_EQ(fit(open, kForced, "Now.</think>\n\n" + call), Fit::kWhole);
  EXPECT_EQ(fit(open, kForced, call), Fit::kBeginning);
  EXPECT_EQ(fit(open, kForced, "Now.</think>\n\nNo"), Fit::kNot);
  const TestServedModel channels(
      "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}{{ tools | "
      "tojson "
      "if tools }}{# <|channel|> #}<|start|>assistant");
  const std::string thought = "<|channel|>analysis<|message|>Now.<|end|><|start|>assistant";
  EXPECT_EQ(fit(channels, kForced,
                thought + "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}"),
            Fit::kWhole);
  EXPECT_EQ(fit(channels, kForced, thought + "<|channel|>final"), Fit::kNot);
  EXPECT_EQ(fit(channels, kSchema, thought + "<|channel|>final<|message|>{\"a\": 1}"), Fit::kWhole);
  EXPECT_EQ(fit(channels, kSchema, thought + "<|channel|>final<|message|>So"), Fit::kNot);
}

TEST(Thinking, IsClosedWhereTheRequestSwitchesItOff) {
  const TestServedModel model(std::string(kTurns) + "<think>\n{{ '' }}");
  for (const std::string field : {R"("enable_thinking":false)", R"("reasoning_effort":"none")",
                                  R"("chat_template_kwargs":{"thinking":false})"}) {
    const auto parsed =
        RequestBody::parse(R"({"messages":[{"role":"user","content":"x"}],)" + field + "}", 64);
    const auto prompt = make_chat_prompt(parsed->root(), *model.context().model, {});
    ASSERT_TRUE(prompt.ok());
    EXPECT_TRUE(prompt->text.ends_with("<think>\n\n</think>\n\n")) << prompt->text;
    EXPECT_EQ(prompt->output.begins, ThinkingState::kClosed);
  }
}

TEST(Thinking, MayBeContinued) {
  const auto begins = [](const std::string& text) {
    const auto parsed =
        RequestBody::parse(R"({"continue_final_message":true,"messages":[{"role":"user","content":"x"},)"
                           R"({"role":"assistant","content":")" +
                               text + "\"}]}",
                           64);
    const TestServedModel thinks(std::string(kChatMl) + "{# </think> #}");
    const auto prompt = make_chat_prompt(parsed->root(), *thinks.context().model, {});
    EXPECT_TRUE(prompt.ok());
    return prompt->output.begins;
  };
  EXPECT_EQ(begins("<think>So far"), ThinkingState::kOpen);
  EXPECT_EQ(begins("<think>So.</think>Then"), ThinkingState::kClosed);
  EXPECT_EQ(begins("Then"), ThinkingState::kClosed);
}

// Control tokens that mean nothing to the parser are left out; text that spells one is not.
TEST(ControlFilter, LeavesOutWhatIsNotKept) {
  const TestServedModel model;
  const auto tokenizer = model.context().model->tokenizer;
  const TokenId start = 1, end = 2;
  std::vector<TokenId> tokens = model.tokens("a<|im_en");
  tokens.insert(tokens.end(), {start, end});
  for (const TokenId token : model.tokens("b")) tokens.push_back(token);
  const std::string text = "a<|im_en<|im_start|><|im_end|>b";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ControlFilter filter(tokenizer, {start});
    const std::string first = filter.push(std::string_view(text).substr(0, cut), tokens);
    EXPECT_EQ(first + filter.push(std::string_view(text).substr(cut), {}), "a<|im_en<|im_start|>b") << cut;
  }
}

}  // namespace
}  // namespace outrider
