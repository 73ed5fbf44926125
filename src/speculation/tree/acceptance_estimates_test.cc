// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/acceptance_estimates.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "speculation/tree/test_trees.h"

namespace outrider {
namespace {

// The drafter's own probability counts for 2 proposals, the prior of other sequences for 6.
double mean_of(double accepted, double proposed, double own, double weight = 2.0) {
  return (accepted + weight * own) / (proposed + weight);
}

void learn_often(AcceptanceEstimates& estimates, int count, bool is_accepted) {
  for (int i = 0; i < count; ++i) estimates.learn(1, 0.3, is_accepted);
}

TEST(AcceptanceEstimates, StartsWithTheDraftersProbability) {
  const AcceptanceEstimates estimates;
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.3), 0.3);
  EXPECT_DOUBLE_EQ(estimates.estimate(40, 0.85), 0.85);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 1.0), 0.4);  // 1 is no information
  EXPECT_DOUBLE_EQ(estimates.continuation(0), 0.7);
}

TEST(AcceptanceEstimates, NeverQuiteSure) {
  AcceptanceEstimates estimates;
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 1e-9), 0.01);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.9999), 0.99);
  for (int i = 0; i < 1000; ++i) {
    estimates.learn(1, 0.01, false);
    estimates.learn(1, 0.95, true);
  }
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.01), 0.01);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.95), 0.99);
}

// Drafters may be user code, which may return any number.
TEST(AcceptanceEstimates, NonsenseIsNoInformation) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  AcceptanceEstimates estimates;
  for (const double nonsense : {std::numeric_limits<double>::quiet_NaN(), kInfinity, 7.0}) {
    EXPECT_DOUBLE_EQ(estimates.estimate(2, nonsense), 0.4);
  }
  EXPECT_DOUBLE_EQ(estimates.estimate(2, -kInfinity), 0.01);
  EXPECT_DOUBLE_EQ(estimates.estimate(2, -3.0), 0.01);
  estimates.learn(2, std::numeric_limits<double>::quiet_NaN(), true);
  EXPECT_DOUBLE_EQ(estimates.estimate(2, 1.0), mean_of(1, 1, 0.4));
}

TEST(AcceptanceEstimates, LearnsByDepthAndProbability) {
  AcceptanceEstimates estimates;
  learn_often(estimates, 9, true);
  learn_often(estimates, 1, false);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.3), mean_of(9, 10, 0.3));
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.25), mean_of(9, 10, 0.25));  // of the same bin
  EXPECT_DOUBLE_EQ(estimates.estimate(2, 0.3), 0.3);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.5), 0.5);
  estimates.learn(8, 1.0, true);
  EXPECT_DOUBLE_EQ(estimates.estimate(60, 1.0), mean_of(1, 1, 0.4));  // all deep nodes share a cell
  EXPECT_DOUBLE_EQ(estimates.estimate(7, 1.0), 0.4);
  EXPECT_DOUBLE_EQ(estimates.estimate(8, 0.95), 0.95);  // another bin of that depth
}

TEST(AcceptanceEstimates, OldProposalsFade) {
  AcceptanceEstimates estimates;
  learn_often(estimates, 100000, true);
  learn_often(estimates, 128, false);
  EXPECT_NEAR(estimates.estimate(1, 0.3), 0.37, 0.03);  // (127 / 128)^128 is 1 / e
}

TEST(AcceptanceEstimates, APriorStandsInForUnseenNodes) {
  AcceptanceEstimates all;
  learn_often(all, 6, true);
  AcceptanceEstimates own(&all);
  const double prior = mean_of(6, 6, 0.3);
  EXPECT_DOUBLE_EQ(own.estimate(1, 0.3), prior);
  learn_often(own, 2, false);
  EXPECT_DOUBLE_EQ(own.estimate(1, 0.3), mean_of(0, 2, prior, 6.0));
  EXPECT_DOUBLE_EQ(all.estimate(1, 0.3), prior);
}

TokenTree two_branches() { return two_branches_with({0.9, 0.1, 0.7, 0.3, 0.5}); }

TEST(AcceptanceEstimates, OnlyNodesWithAcceptedParentsCount) {
  AcceptanceEstimates estimates;
  const std::vector<TokenId> tokens = {10, 31};
  EXPECT_EQ(estimates.learn(two_branches(), tokens), 1);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.9), mean_of(1, 1, 0.9));
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.1), mean_of(0, 1, 0.1));
  EXPECT_DOUBLE_EQ(estimates.estimate(2, 0.7), mean_of(0, 1, 0.7));
  EXPECT_DOUBLE_EQ(estimates.estimate(2, 0.3), 0.3);  // its parent was not accepted
  EXPECT_DOUBLE_EQ(estimates.estimate(3, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(estimates.continuation(0), mean_of(1, 1, 0.7));
  EXPECT_DOUBLE_EQ(estimates.continuation(1), mean_of(0, 1, 0.7));
  EXPECT_DOUBLE_EQ(estimates.continuation(2), 0.7);
}

TEST(AcceptanceEstimates, FollowsTheSecondBranchToItsEnd) {
  AcceptanceEstimates estimates;
  const std::vector<TokenId> tokens = {20, 40, 7};
  EXPECT_EQ(estimates.learn(two_branches(), tokens), 2);
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.9), mean_of(0, 1, 0.9));
  EXPECT_DOUBLE_EQ(estimates.estimate(1, 0.1), mean_of(1, 1, 0.1));
  EXPECT_DOUBLE_EQ(estimates.estimate(2, 0.3), mean_of(1, 1, 0.3));
  EXPECT_DOUBLE_EQ(estimates.continuation(1), mean_of(1, 1, 0.7));
  EXPECT_DOUBLE_EQ(estimates.continuation(2), 0.7);  // a leaf has no children to continue with
}

TEST(AcceptanceEstimates, TokensAndTreesMayEndBeforeEachOther) {
  AcceptanceEstimates estimates;
  EXPECT_EQ(estimates.learn(two_branches(), std::vector<TokenId>{10, 30, 50, 1, 2}), 3);
  EXPECT_EQ(estimates.learn(two_branches(), std::vector<TokenId>{10}), 1);  // the sequence ended there
  EXPECT_EQ(estimates.learn(TokenTree(9), std::vector<TokenId>{10}), 0);
  EXPECT_DOUBLE_EQ(estimates.estimate(2, 0.7), mean_of(1, 1, 0.7));
  TokenTree deep(0);
  std::vector<TokenId> tokens;
  for (int level = 0; level < 100; ++level) {
    deep.add(level, level, 0.5);
    tokens.push_back(level);
  }
  EXPECT_EQ(estimates.learn(deep, tokens), 64);  // the largest depth of a tree
}

}  // namespace
}  // namespace outrider
