// SPDX-License-Identifier: Apache-2.0
#include "drafters/ngram/ngram_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<TokenId>;

Tokens propose(const NgramPoolOptions& options, const Tokens& tokens) {
  NgramPool pool(options);
  pool.learn(tokens, 0);
  const auto found = pool.find(tokens);
  return {found.begin(), found.end()};
}

TEST(NgramPool, LongestPatternWins) {
  // A single 2 was followed by 9 first, but (1, 2) by 5.
  EXPECT_THAT(propose({.max_pattern = 2, .max_draft_len = 2}, {2, 9, 7, 1, 2, 5, 6, 1, 2}),
              ElementsAre(5, 6));
  EXPECT_THAT(propose({.max_pattern = 1, .max_draft_len = 2}, {2, 9, 7, 1, 2, 5, 6, 1, 2}),
              ElementsAre(9, 7));
}

TEST(NgramPool, NothingKnownGivesNothing) {
  EXPECT_THAT(propose({}, {1, 2, 3}), IsEmpty());
  EXPECT_THAT(propose({}, {1}), IsEmpty());
}

TEST(NgramPool, OldestOrNewest) {
  const Tokens tokens = {1, 5, 5, 1, 6, 6, 1};
  EXPECT_THAT(propose({.max_pattern = 1, .max_draft_len = 2, .use_oldest = true}, tokens), ElementsAre(5, 5));
  EXPECT_THAT(propose({.max_pattern = 1, .max_draft_len = 2, .use_oldest = false}, tokens),
              ElementsAre(6, 6));
}

TEST(NgramPool, ARepeatedContinuationIsTheNewest) {
  const Tokens tokens = {1, 5, 5, 1, 6, 6, 1, 5, 5, 1};
  EXPECT_THAT(propose({.max_pattern = 1, .max_draft_len = 2, .use_oldest = false}, tokens),
              ElementsAre(5, 5));
}

TEST(NgramPool, KeepingOneKeepsTheLongestFirst) {
  NgramPoolOptions options{.max_pattern = 1, .max_draft_len = 3, .keep_all = false, .use_oldest = true};
  EXPECT_THAT(propose(options, {1, 5, 5, 5, 1, 6, 6, 6, 1}), ElementsAre(5, 5, 5));
  options.use_oldest = false;
  EXPECT_THAT(propose(options, {1, 5, 5, 5, 1, 6, 6, 6, 1}), ElementsAre(6, 6, 6));
}

// The pool does not depend on the steps in which a sequence became known.
TEST(NgramPool, LearningInStepsEqualsLearningAtOnce) {
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    Tokens tokens;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525 + 1013904223;
      tokens.push_back(static_cast<TokenId>((state >> 16) % 4));
    }
    for (const bool keep_all : {true, false}) {
      for (const bool use_oldest : {true, false}) {
        const NgramPoolOptions options{
            .max_pattern = 3, .max_draft_len = 5, .keep_all = keep_all, .use_oldest = use_oldest};
        NgramPool stepwise(options);
        size_t known = 0;
        while (known < tokens.size()) {
          state = state * 1664525 + 1013904223;
          const size_t next = std::min(tokens.size(), known + 1 + (state >> 16) % 6);
          stepwise.learn(std::span(tokens).first(next), known);
          known = next;
        }
        const auto found = stepwise.find(tokens);
        const Tokens got(found.begin(), found.end());
        if (use_oldest && keep_all) {
          ASSERT_EQ(got, propose(options, tokens));
        } else {
          ASSERT_EQ(got.empty(), propose(options, tokens).empty());
        }
      }
    }
  }
}

TEST(NgramPool, ForgetsTheLeastUsedPatterns) {
  NgramPool pool({.max_pattern = 1, .max_draft_len = 1, .max_patterns = 100});
  Tokens tokens;
  for (TokenId token = 0; token < 1000; ++token) tokens.push_back(token);
  pool.learn(tokens, 0);
  EXPECT_EQ(pool.pattern_count(), 100u);
  EXPECT_THAT(pool.find(Tokens{5}), IsEmpty());
  EXPECT_THAT(pool.find(Tokens{998}), ElementsAre(999));
}

}  // namespace
}  // namespace outrider
