// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/fill_in_middle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/api/answers/parse_call.h"
#include "server/api/served_model.h"

namespace outrider {
namespace {

// A tokenizer of bytes and these control tokens; the byte b is token names.size() + 1 + b.
std::shared_ptr<const Tokenizer> tokenizer_with(const std::vector<std::string>& names) {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePiece;
  spec.pieces = {"<unk>"};
  spec.attributes = {TokenAttribute::kUnknown};
  for (const std::string& name : names) {
    spec.pieces.push_back(name);
    spec.attributes.push_back(TokenAttribute::kControl);
  }
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    spec.pieces.push_back(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">");
    spec.attributes.push_back(TokenAttribute::kByte);
  }
  spec.scores.assign(spec.pieces.size(), 0);
  spec.unknown = 0;
  return Tokenizer::create(std::move(spec)).value();
}

TEST(FillInMiddle, PutsTheTextsBetweenTheMarks) {
  const auto tokenizer = tokenizer_with({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  const auto marks = find_middle_marks(*tokenizer);
  ASSERT_TRUE(marks);
  EXPECT_THAT(middle_prompt(*tokenizer, *marks, "ab", "<fim_middle>").size(),
              2 + 3 + std::string("<fim_middle>").size());
  EXPECT_THAT(middle_prompt(*tokenizer, *marks, "ab", "c"),
              testing::ElementsAre(1, 4 + 'a', 4 + 'b', 2, 4 + 'c', 3));
}

// A model with such a tokenizer and a context of 64 tokens.
ServedModel coder() {
  ServedModel model;
  model.name = "coder";
  model.tokenizer = tokenizer_with({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  model.context = 64;
  model.vocab_size = model.tokenizer->vocab_size();
  return model;
}

std::string infill_prompt(const ServedModel& model, const std::string& body) {
  CallContext context;
  context.model = &model;
  const auto call = parse_call(parse_infill, body, context);
  return call.ok() ? model.tokenizer->decode((*call)->requests()[0].prompt, false) : call.error().message;
}

TEST(FillInMiddle, ReadsTheRequestsOfEditors) {
  const ServedModel model = coder();
  EXPECT_EQ(infill_prompt(model, R"({"input_prefix":"a","prompt":"b","input_suffix":"c","n_predict":4,
      "samplers":["top_k","infill"],"t_max_predict_ms":500,"input_extra":[{"filename":"x","text":"e"}]})"),
            "---▁snippet▁---\n\ne<fim_prefix>ab<fim_suffix>c<fim_middle>");
  const std::string extra(200, 'e');
  EXPECT_EQ(infill_prompt(
                model, R"({"input_prefix":"a","n_predict":50,"input_extra":[{"text":")" + extra + R"("}]})"),
            "eeeeeeeeee<fim_prefix>a<fim_suffix><fim_middle>");
  EXPECT_EQ(infill_prompt(model, R"({"input_prefix":"a","n":2})"), "n: expected 1, found 2");
}

TEST(FillInMiddle, AnswersAsLlamaServerDoes) {
  const ServedModel model = coder();
  CallContext context;
  context.model = &model;
  for (const bool streams : {false, true}) {
    const auto call =
        parse_call(parse_infill,
                   std::string(R"({"input_prefix":"a","stream":)") + (streams ? "true}" : "false}"), context);
    ASSERT_TRUE(call.ok()) << call.error().message;
    std::string events;
    ChoiceDelta delta;
    delta.text = "xy";
    delta.tokens = {4 + 'x', 4 + 'y'};
    (*call)->add(0, std::move(delta), events);
    ChoiceDelta last;
    last.completion.emplace();
    (*call)->add(0, std::move(last), events);
    const std::string answer = streams ? events : (*call)->body();
    EXPECT_THAT(answer, testing::HasSubstr(R"({"index":0,"content":"xy","stop":)"));
    EXPECT_THAT(answer, testing::HasSubstr(R"("stop_type":"eos","stopping_word":"")"));
  }
}

TEST(FillInMiddle, NeedsAllMarks) {
  EXPECT_FALSE(find_middle_marks(*tokenizer_with({"<fim_prefix>", "<fim_suffix>"})));
}

}  // namespace
}  // namespace outrider
