// SPDX-License-Identifier: Apache-2.0
#include "drafters/predicted/predicted_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Tokens = std::vector<TokenId>;

// Distinct tokens from `first` on.
Tokens run_of(TokenId first, int count) {
  Tokens tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

Tokens joined(std::initializer_list<Tokens> parts) {
  Tokens all;
  for (const Tokens& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// An answer that is decoded step by step with drafts from a prediction.
struct Decoded {
  int steps = 0;
  int drafted = 0;
  int64_t used = 0;
};

Decoded decode(const Tokens& prediction, const Tokens& answer, int max_nodes = 64) {
  PredictedText text(prediction);
  Decoded decoded;
  size_t length = 0;
  while (length < answer.size()) {
    TokenTree tree(0);
    text.grow(max_nodes, tree);
    EXPECT_LE(tree.drafted(), max_nodes);
    decoded.drafted += tree.drafted();
    int accepted = 0;
    while (accepted < tree.drafted() && length + static_cast<size_t>(accepted) < answer.size() &&
           tree.token(accepted + 1) == answer[length + static_cast<size_t>(accepted)]) {
      ++accepted;
    }
    for (int i = 0; i <= accepted && length < answer.size(); ++i)
      text.follow(std::span(answer).first(++length));
    ++decoded.steps;
  }
  decoded.used = text.used();
  return decoded;
}

TEST(PredictedText, IsDraftedFromItsBeginning) {
  PredictedText text(run_of(10, 100));
  TokenTree tree(0);
  text.grow(3, tree);
  EXPECT_THAT(tree.tokens(), ElementsAre(0, 10, 11, 12));
  EXPECT_THAT(tree.parents(), ElementsAre(-1, 0, 1, 2));
}

TEST(PredictedText, WhereItIsRightAStepTakesAsManyTokensAsItMay) {
  const Tokens right = run_of(10, 1000);
  const Decoded decoded = decode(right, right);
  EXPECT_LE(decoded.steps, 1000 / 65 + 3);
  EXPECT_EQ(decoded.used, 1000);
}

TEST(PredictedText, ChangedInsertedAndRemovedTokensCostAFewSteps) {
  const Tokens file = run_of(10, 600);
  const Tokens changed = joined({run_of(10, 200), {5}, run_of(211, 399)});
  const Tokens inserted = joined({run_of(10, 200), run_of(1000, 6), run_of(210, 400)});
  const Tokens removed = joined({run_of(10, 200), run_of(250, 360)});
  const int plain = decode(file, file).steps;
  EXPECT_LE(decode(file, changed).steps, plain + 8);
  EXPECT_LE(decode(file, inserted).steps, plain + 14);
  EXPECT_LE(decode(file, removed).steps, plain + 9);
  EXPECT_EQ(decode(file, changed).used, 599);
  EXPECT_EQ(decode(file, inserted).used, 600);
  EXPECT_EQ(decode(file, removed).used, 560);
}

TEST(PredictedText, AnAnswerThatBeginsElsewhereFindsItsPlace) {
  const Tokens file = run_of(10, 600);
  EXPECT_LE(decode(file, run_of(300, 300)).steps, decode(file, file).steps + 6);
  EXPECT_LE(decode(file, joined({run_of(1000, 20), file})).steps, decode(file, file).steps + 26);
}

// Lines that are alike but for a number: after an edit the next of them follows, not the first.
TEST(PredictedText, OfEquallyLongMatchesTheNextOneCounts) {
  Tokens file, answer;
  for (int line = 0; line < 40; ++line) {
    const Tokens alike = joined({{1, 2, 3}, {100 + line}, {4, 5}});
    file.insert(file.end(), alike.begin(), alike.end());
    const Tokens written = line == 20 ? Tokens{1, 2, 3, 99, 4, 5} : alike;
    answer.insert(answer.end(), written.begin(), written.end());
  }
  EXPECT_LE(decode(file, answer).steps, decode(file, file).steps + 8);
}

TEST(PredictedText, AUselessOneIsHardlyDrafted) {
  const Decoded decoded = decode(run_of(10, 500), run_of(1000, 500));
  EXPECT_EQ(decoded.steps, 500);
  EXPECT_LE(decoded.drafted, 16);
  EXPECT_EQ(decoded.used, 0);
}

TEST(PredictedText, EndsWithItsLastToken) {
  PredictedText text(run_of(10, 3));
  const Tokens answer = run_of(10, 4);
  for (size_t length = 1; length <= 3; ++length) text.follow(std::span(answer).first(length));
  EXPECT_THAT(text.next(), IsEmpty());
  EXPECT_FALSE(text.is_looking());
  text.follow(answer);
  EXPECT_THAT(text.next(), IsEmpty());
  EXPECT_EQ(text.used(), 3);
}

TEST(PredictedText, LooksForItsPlaceForAWhileAfterItWasFollowed) {
  PredictedText text(run_of(10, 100));
  EXPECT_FALSE(text.is_looking());
  Tokens answer = run_of(10, 20);
  for (size_t length = 1; length <= answer.size(); ++length) text.follow(std::span(answer).first(length));
  EXPECT_EQ(text.next().front(), 30);
  for (int i = 0; i < 8; ++i) {
    answer.push_back(1000 + i);
    text.follow(answer);
    EXPECT_EQ(text.is_looking(), i < 7) << i;
  }
}

// No token counts twice, whatever is written.
TEST(PredictedText, UsesNoMoreTokensThanItHas) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Tokens prediction, answer;
    for (unsigned i = random() % 60; i > 0; --i) prediction.push_back(static_cast<TokenId>(random() % 3));
    for (unsigned i = random() % 120; i > 0; --i) answer.push_back(static_cast<TokenId>(random() % 3));
    EXPECT_LE(decode(prediction, answer, 1 + round % 9).used, std::ssize(prediction));
  }
}

}  // namespace
}  // namespace outrider
