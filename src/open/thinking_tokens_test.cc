// SPDX-License-Identifier: Apache-2.0
#include "open/thinking_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider {
namespace {

// "a", "b", and the marks from id 2 on.
RelaxedOptions completed(const std::vector<std::string>& marks, RelaxedOptions options = {}) {
  TokenizerSpec spec;
  spec.pieces = {"a", "b"};
  spec.pieces.insert(spec.pieces.end(), marks.begin(), marks.end());
  spec.attributes.assign(spec.pieces.size(), TokenAttribute::kNormal);
  for (size_t id = 2; id < spec.pieces.size(); ++id) spec.attributes[id] = TokenAttribute::kControl;
  const auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  if (tokenizer.ok()) take_thinking_tokens(**tokenizer, options);
  return options;
}

TEST(ThinkingTokens, AreFoundInTheVocabulary) {
  const RelaxedOptions found = completed({"<s>", "</think>", "<think>"});
  EXPECT_EQ(found.begin_thinking_token, 4);
  EXPECT_EQ(found.end_thinking_token, 3);
  const RelaxedOptions brackets = completed({"[THINK]", "<think>", "[/THINK]"});
  EXPECT_EQ(brackets.begin_thinking_token, 2);
  EXPECT_EQ(brackets.end_thinking_token, 4);
}

TEST(ThinkingTokens, ThatWereGivenStay) {
  const RelaxedOptions found = completed({"<think>", "</think>"}, {.begin_thinking_token = 1});
  EXPECT_EQ(found.begin_thinking_token, 1);
  EXPECT_EQ(found.end_thinking_token, 3);
}

TEST(ThinkingTokens, AreMissingWithoutBothMarks) {
  const RelaxedOptions found = completed({"<think>", "</thinking>"});
  EXPECT_EQ(found.begin_thinking_token, -1);
  EXPECT_EQ(found.end_thinking_token, -1);
}

}  // namespace
}  // namespace outrider
