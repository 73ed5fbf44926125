// SPDX-License-Identifier: Apache-2.0
#include "sampling/token_history.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(TokenHistory, CountsPromptAndOutputApart) {
  TokenHistory history;
  const TokenId prompt[] = {3, 5, 3};
  history.add_prompt(prompt);
  history.push(3);
  history.push(9);
  EXPECT_EQ(history.counts(3).prompt, 2);
  EXPECT_EQ(history.counts(3).output, 1);
  EXPECT_EQ(history.counts(5).output, 0);
  EXPECT_EQ(history.counts(9).prompt, 0);
  EXPECT_EQ(history.counts(9).output, 1);
}

TEST(TokenHistory, PopUndoesPushesInReverse) {
  TokenHistory history;
  history.push(1);
  history.push(2);
  history.push(1);
  history.pop();
  EXPECT_EQ(history.counts(1).output, 1);
  history.pop();
  EXPECT_EQ(history.counts(2).output, 0);
  history.pop();
  EXPECT_EQ(history.counts(1).output, 0);
}

TEST(TokenHistory, ManyTokensKeepTheirCounts) {
  TokenHistory history;
  history.reserve(10);
  constexpr TokenId kTokens = 5000;
  for (TokenId token = 0; token < kTokens; ++token) {
    for (int i = 0; i < token % 3; ++i) history.push(token * 1024);
  }
  for (TokenId token = 0; token < kTokens; ++token) EXPECT_EQ(history.counts(token * 1024).output, token % 3);
  EXPECT_EQ(history.counts(7).output, 0);
}

TEST(TokenHistoryDeathTest, PopOfNothingIsABrokenInvariant) {
  TokenHistory history;
  EXPECT_DEATH(history.pop(), "tokens_");
}

}  // namespace
}  // namespace outrider
