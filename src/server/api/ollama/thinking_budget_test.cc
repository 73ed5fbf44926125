// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/thinking_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/answers/test_model.h"
#include "server/api/requests/chat_request.h"
#include "server/api/requests/constraints.h"

namespace outrider {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kAsked = R"({"messages":[{"role":"user","content":"x"}],)";
constexpr std::string_view kOpens = "{{ messages[0].content }}{# </think> #}<think>\n";
constexpr std::string_view kChannels =
    "{{ messages[0].content }}{# <|channel|><|message|> #}<|start|>assistant";

// The constraint of a chat; null: none.
std::shared_ptr<TokenConstraint> constraint_of(const TestServedModel& model, const std::string& fields) {
  const auto call = model.chat(kAsked + fields + "}");
  EXPECT_TRUE(call.ok()) << call.error().message;
  return call.ok() ? (*call)->requests().front().constraint : nullptr;
}

bool may_come(std::span<const uint64_t> allowed, TokenId token) {
  return allowed[static_cast<size_t>(token) / 64] >> token % 64 & 1;
}

// The text of a model that wants to say `wish`, at most `most` tokens. In place of a forbidden token it says
// the first one that may come. Every draft of a forbidden token is refused and leaves no trace.
std::string said(const TestServedModel& model, TokenConstraint& constraint,
                 std::initializer_list<std::string_view> wish, size_t most = 100) {
  std::string text;
  TokenConstraint::State state = constraint.start();
  std::vector<TokenId> wished;
  for (const std::string_view part : wish) {
    const std::vector<TokenId> tokens = model.tokens(part);
    wished.insert(wished.end(), tokens.begin(), tokens.end());
  }
  for (size_t count = 0; !wished.empty() && count < most && !constraint.is_complete(state); ++count) {
    const std::span<const uint64_t> allowed = constraint.allowed(state);
    TokenId token = wished.front();
    if (may_come(allowed, token)) {
      wished.erase(wished.begin());
    } else {
      const TokenId refused = token;
      for (token = 0; !may_come(allowed, token);) ++token;
      EXPECT_EQ(constraint.advance(state, refused), TokenConstraint::kDead);
    }
    const TokenConstraint::State next = constraint.advance(state, token);
    EXPECT_NE(next, TokenConstraint::kDead);
    EXPECT_EQ(constraint.advance(state, token), next);
    state = next;
    text += model.model().tokenizer->decode({{token}}, false);
  }
  return text;
}

TEST(ThinkingBudget, ClosesTheThinkingAfterSoManyTokens) {
  const TestServedModel model(kOpens);
  for (const int budget : {0, 1, 3, 7}) {
    const auto constraint = constraint_of(model, "\"thinking_token_budget\":" + std::to_string(budget));
    ASSERT_NE(constraint, nullptr);
    const std::string wish = "one two three four five six seven eight nine ten";
    const std::vector<TokenId> tokens = model.tokens(wish);
    const std::string thought =
        model.model().tokenizer->decode({tokens.begin(), tokens.begin() + budget}, false);
    EXPECT_EQ(said(model, *constraint, {wish}), thought + "\n</think>\n\n" + wish.substr(thought.size()));
  }
}

TEST(ThinkingBudget, IsNotUsedUpByOtherText) {
  const TestServedModel model(kOpens), silent("{{ messages[0].content }}{# </think> #}");
  for (const std::string text :
       {"short</think>and a long answer of many words", "</think>\n\nwords and words"})
    EXPECT_EQ(said(model, *constraint_of(model, R"("thinking_budget":9)"), {text}), text);
  const std::string text = "a long answer without a thought";
  EXPECT_EQ(said(silent, *constraint_of(silent, R"("thinking_budget":2)"), {text}), text);
  EXPECT_EQ(said(silent, *constraint_of(silent, R"("thinking_budget":0)"), {"<think>no</think>yes"}),
            "<think>\n</think>\n\nno</think>yes");
  const TestServedModel none("{{ messages[0].content }}");
  EXPECT_EQ(constraint_of(none, R"("thinking_budget":2)"), nullptr);
  EXPECT_EQ(constraint_of(model, R"("thinking_budget":-1)"), nullptr);
}

TEST(ThinkingBudget, CallsEndTheThinking) {
  const TestServedModel model(
      "{{ messages[0].content }}{{ tools | tojson if tools }}{# <tool_call> </think> #}<think>\n");
  const std::string text = "I<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"many words and more\"}}";
  EXPECT_EQ(said(model,
                 *constraint_of(
                     model, R"("thinking_budget":20,"tools":[{"type":"function","function":{"name":"f"}}])"),
                 {text}),
            text);
}

TEST(ThinkingBudget, ModelsWithChannelsChooseAnother) {
  const TestServedModel model(kChannels);
  const std::string thought = "one two three", begin = "<|channel|>analysis<|message|>";
  const std::string budget = "\"thinking_token_budget\":" + std::to_string(model.tokens(thought).size());
  const std::string next = "<|end|><|start|>assistant<|channel|>", final = "final<|message|>yes";
  EXPECT_EQ(said(model, *constraint_of(model, budget), {begin, thought, final}),
            begin + thought + next + final);
  const std::string again = said(model, *constraint_of(model, budget), {begin, thought, "analysis"}, 80);
  EXPECT_THAT(again, StartsWith(begin + thought + next));
  EXPECT_NE(again[begin.size() + thought.size() + next.size()], 'a');
}

TEST(ThinkingBudget, HoldsBesideASchema) {
  const TestServedModel model(kOpens);
  const auto constraint = constraint_of(
      model,
      R"("thinking_token_budget":3,"response_format":{"type":"json_schema","json_schema":{"name":"s",)"
      R"("schema":{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}}})");
  ASSERT_NE(constraint, nullptr);
  const std::string text = said(model, *constraint, {"one two three four{\"a\":1}"});
  const size_t close = text.find("</think>");
  ASSERT_NE(close, std::string::npos) << text;
  EXPECT_LE(model.tokens(text.substr(0, close)).size(), 4u);
  EXPECT_THAT(text.substr(close), HasSubstr("{\"a\":"));
}

TEST(ThinkingBudget, AMessageIsWrittenWhereItEnds) {
  TestServedModel model(kOpens);
  model.model().thinking_message = " So I answer now.";
  model.model().thinking_budget = 2;
  EXPECT_THAT(said(model, *constraint_of(model, R"("seed":1)"), {"one two three four"}),
              HasSubstr(" So I answer now.\n</think>\n\n"));
  EXPECT_EQ(constraint_of(model, R"("thinking_token_budget":-1)"), nullptr);
}

TEST(ThinkingBudget, EveryProtocolHasAField) {
  const TestServedModel model(kOpens);
  const auto has_budget = [](const ApiResult<std::unique_ptr<GenerationCall>>& call) {
    EXPECT_TRUE(call.ok()) << call.error().message;
    return call.ok() && (*call)->requests().front().constraint != nullptr;
  };
  const std::string message = R"({"max_tokens":9,"messages":[{"role":"user","content":"x"}])";
  EXPECT_TRUE(has_budget(model.message(message + R"(,"thinking":{"type":"enabled","budget_tokens":4}})")));
  EXPECT_FALSE(has_budget(model.message(message + R"(,"thinking":{"type":"enabled"}})")));
  EXPECT_TRUE(has_budget(model.message(message + R"(,"thinking_budget":4})")));
  EXPECT_TRUE(has_budget(model.response(R"({"input":"x","thinking_token_budget":4})")));
  EXPECT_FALSE(has_budget(model.response(R"({"input":"x"})")));
  const auto refused = model.chat(kAsked + R"("thinking_token_budget":-2})");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("thinking_token_budget"));
}

}  // namespace
}  // namespace outrider
