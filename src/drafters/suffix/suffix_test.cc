// SPDX-License-Identifier: Apache-2.0
#include "drafters/suffix/suffix.h"
#include "drafters/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<TokenId>;

class Suffix : public ::testing::Test {
 protected:
  void make(const SpeculativeOptions& options) {
    auto made = make_suffix_drafter(options, {});
    ASSERT_TRUE(made.ok());
    drafter_ = *made;
  }

  TokenTree draft(uint64_t sequence, const Tokens& tokens, int prompt_length, int depth = 8, int nodes = 8) {
    const DraftRequest request{.sequence = sequence,
                               .tokens = tokens,
                               .prompt_length = prompt_length,
                               .max_draft_len = depth,
                               .max_nodes = nodes};
    TokenTree tree(tokens.back());
    EXPECT_TRUE(drafter_->draft({&request, 1}, {&tree, 1}).ok());
    return tree;
  }

  static Tokens drafted(const TokenTree& tree) { return {tree.tokens().begin() + 1, tree.tokens().end()}; }

  std::shared_ptr<Drafter> drafter_;
};

TEST_F(Suffix, ProposesWhatFollowedAsFarAsTheMatchIsLong) {
  make({});
  const TokenTree tree = draft(1, {1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 10);
  EXPECT_THAT(drafted(tree), ElementsAre(4, 5, 6));
  EXPECT_EQ(tree.probability(1), 0.5);  // (1, 2, 3) occurred twice and was followed once
  EXPECT_EQ(tree.probability(2), 0.99);
  EXPECT_THAT(drafted(draft(2, {1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 10, 2, 8)), ElementsAre(4, 5));
  EXPECT_THAT(drafted(draft(3, {1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 10, 8, 1)), ElementsAre(4));
}

TEST_F(Suffix, BranchesOnlyWhereATreeIsWanted) {
  const Tokens tokens = {1, 2, 1, 3, 1};
  SpeculativeOptions options;
  options.suffix.max_spec_factor = 4;
  make(options);
  EXPECT_THAT(drafted(draft(1, tokens, 5)), ElementsAre(3, 1));
  options.tree.kind = TreeKind::kDynamic;
  make(options);
  const TokenTree tree = draft(1, tokens, 5);
  EXPECT_THAT(drafted(tree), ElementsAre(3, 2, 1, 1));  // the likeliest first, the later one among equals
  EXPECT_THAT(Tokens(tree.parents().begin(), tree.parents().end()), ElementsAre(-1, 0, 0, 1, 2));
  EXPECT_EQ(tree.probability(2), 1.0 / 3);
}

// Steps, what they commit, and what becomes known only with the next request amount to the same.
TEST_F(Suffix, LearningInStepsEqualsLearningAtOnce) {
  uint32_t state = 1;
  const auto below = [&](uint32_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % n;
  };
  for (uint64_t round = 0; round < 200; ++round) {
    make({});
    Tokens tokens = {0};
    for (int step = 0; step < 10; ++step) {
      const TokenTree tree = draft(round, tokens, 1);
      Verdict verdict;
      for (uint32_t n = below(4) + 1; n > 0; --n) verdict.tokens.push_back(static_cast<TokenId>(below(3)));
      tokens.insert(tokens.end(), verdict.tokens.begin(), verdict.tokens.end());
      if (below(3) != 0) drafter_->observe(round, tree, verdict);
    }
    const Tokens stepwise = drafted(draft(round, tokens, 1));
    ASSERT_EQ(stepwise, drafted(draft(round + 1000, tokens, 1)));
  }
}

TEST_F(Suffix, OutputsOfFinishedRequestsServeLaterOnesOnlyWhereAllowed) {
  const Tokens first = {50, 51, 1, 2, 3, 4, 5};
  for (const int64_t cached : {0, 2}) {
    SpeculativeOptions options;
    options.suffix.max_cached_requests = cached;
    make(options);
    draft(1, first, 2);
    EXPECT_EQ(draft(2, {9, 1, 2}, 1).drafted(), 0);  // the first one still runs
    drafter_->end(1);
    const Tokens found = drafted(draft(2, {9, 1, 2}, 1));
    if (cached == 0) {
      EXPECT_TRUE(found.empty());
      continue;
    }
    EXPECT_THAT(found, ElementsAre(3, 4));
    EXPECT_EQ(draft(3, {9, 50}, 1).drafted(), 0);  // a prompt is not kept
    // Put aside and taken up again: not finished.
    drafter_->begin(1, first);
    EXPECT_EQ(draft(2, {9, 1, 2}, 1).drafted(), 0);
    draft(1, first, 2);
    drafter_->end(1);
    // The oldest leaves.
    for (const uint64_t other : {10, 11}) {
      draft(other, {60, 61, static_cast<TokenId>(other)}, 1);
      drafter_->end(other);
    }
    EXPECT_EQ(draft(4, {9, 1, 2}, 1).drafted(), 0);
    EXPECT_EQ(draft(4, {9, 1, 2, 61}, 1).drafted(), 1);
  }
}

TEST_F(Suffix, ALongSequenceIsForgottenFromItsStart) {
  make({});
  Tokens tokens = {1, 2, 3, 4};
  for (int64_t i = 0; i < kMaxSequenceTokens; ++i) tokens.push_back(static_cast<TokenId>(10 + i));
  tokens.insert(tokens.end(), {10 + kMaxSequenceTokens - 3, 1, 2, 3});
  EXPECT_EQ(draft(1, tokens, 4).drafted(), 0);
  tokens.insert(tokens.end(), {1, 2});
  EXPECT_THAT(drafted(draft(1, tokens, 4)), ElementsAre(3, 1));
}

TEST_F(Suffix, RefusesDepthsOutOfRange) {
  SpeculativeOptions options;
  options.decoding_type = Method::kSuffix;
  options.suffix.max_tree_depth = 1;
  EXPECT_FALSE(make_drafter(options, {}).ok());
}

}  // namespace
}  // namespace outrider
