// SPDX-License-Identifier: Apache-2.0
#include "outrider/token_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace outrider {
namespace {

using testing::ElementsAre;

TEST(TokenTree, StartsWithThePendingToken) {
  const TokenTree tree(42);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.drafted(), 0);
  EXPECT_EQ(tree.token(0), 42);
  EXPECT_EQ(tree.parent(0), -1);
  EXPECT_EQ(tree.depth(0), 0);
  EXPECT_EQ(tree.children_kind(0), ChildrenKind::kChosen);
  EXPECT_TRUE(tree.distribution(0).empty());
}

TEST(TokenTree, KeepsNodesInTheOrderAdded) {
  TokenTree tree(1);
  const int a = tree.add(0, 10);
  const int b = tree.add(0, 20);
  const int below_b = tree.add(b, 30);
  const int below_a = tree.add(a, 30);
  EXPECT_THAT(tree.tokens(), ElementsAre(1, 10, 20, 30, 30));
  EXPECT_THAT(tree.parents(), ElementsAre(-1, 0, 0, b, a));
  EXPECT_EQ(tree.depth(below_a), 2);
  EXPECT_EQ(tree.depth(below_b), 2);
  EXPECT_EQ(tree.drafted(), 4);
}

TEST(TokenTree, SiblingsHoldDifferentTokens) {
  TokenTree tree(1);
  const int child = tree.add(0, 10);
  EXPECT_EQ(tree.add(0, 10), child);
  EXPECT_EQ(tree.size(), 2);
  EXPECT_NE(tree.add(child, 10), child);
  EXPECT_EQ(tree.size(), 3);
}

TEST(TokenTree, RemembersTheDistributionOfEachNode) {
  TokenTree tree(1);
  const int child = tree.add(0, 10);
  tree.set_distribution(child, {{7}, {1.0}});
  tree.set_distribution(0, {{10, 11}, {0.5, 0.5}});
  EXPECT_EQ(tree.children_kind(child), ChildrenKind::kSampled);
  EXPECT_THAT(tree.distribution(child).tokens, ElementsAre(7));
  EXPECT_THAT(tree.distribution(0).tokens, ElementsAre(10, 11));
  tree.set_distribution(child, {{8}, {1.0}});
  EXPECT_THAT(tree.distribution(child).tokens, ElementsAre(8));
  EXPECT_THAT(tree.distribution(0).tokens, ElementsAre(10, 11));
}

TEST(TokenTree, ResetForgetsEverything) {
  TokenTree tree(1);
  tree.set_distribution(tree.add(0, 10), {{7}, {1.0}});
  tree.reset(5);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.token(0), 5);
  const int child = tree.add(0, 10);
  EXPECT_EQ(tree.children_kind(child), ChildrenKind::kChosen);
}

// The proposals at `node`: token and distribution of each.
std::vector<std::pair<TokenId, int>> proposals_at(const TokenTree& tree, int node) {
  std::vector<std::pair<TokenId, int>> found;
  for (const Proposal& proposal : tree.proposals()) {
    if (proposal.parent == node) found.emplace_back(tree.token(proposal.child), proposal.distribution);
  }
  return found;
}

TEST(TokenTree, MergingSharesPathsAndKeepsEveryProposalWithItsDistribution) {
  TokenTree a(1);
  a.set_distribution(0, {{5, 6}, {0.5, 0.5}});
  a.add(a.add(0, 5, 0.25), 7);
  TokenTree b(1);
  b.set_distribution(0, {{5, 9}, {0.1, 0.9}}, ChildrenKind::kIndependent);
  b.add(0, 9);
  b.add(b.add(0, 5, 0.75), 8);
  TokenTree merged(1);
  merged.merge(a, 0);
  merged.merge(b, 1);
  EXPECT_THAT(merged.tokens(), ElementsAre(1, 5, 7, 9, 8));
  EXPECT_THAT(merged.parents(), ElementsAre(-1, 0, 1, 0, 1));
  EXPECT_EQ(merged.probability(1), 1.0 - 0.75 * 0.25);
  std::vector<uint32_t> sources;
  for (int node = 0; node < merged.size(); ++node) sources.push_back(merged.sources(node));
  EXPECT_THAT(sources, ElementsAre(3, 3, 1, 2, 2));
  EXPECT_THAT(proposals_at(merged, 0), ElementsAre(std::pair(5, 0), std::pair(9, 1), std::pair(5, 1)));
  EXPECT_THAT(proposals_at(merged, 1), ElementsAre(std::pair(7, -1), std::pair(8, -1)));
  EXPECT_EQ(merged.distribution_at(1).probabilities[0], 0.1);
  EXPECT_EQ(merged.kind_at(0), ChildrenKind::kSampled);
  EXPECT_EQ(merged.kind_at(1), ChildrenKind::kIndependent);
}

// The block rule needs to know that a node has several proposals before it looks at what they are.
TEST(TokenTree, EveryDrafterOfAMergedTreeProposesForItself) {
  TokenTree drawn(1), chosen(1), merged(1);
  drawn.set_distribution(0, {{5, 6}, {0.5, 0.5}});
  drawn.add(0, 5);
  chosen.add(0, 5);
  merged.merge(drawn, 0);
  merged.merge(chosen, 1);
  EXPECT_EQ(merged.drafted(), 1);
  EXPECT_THAT(proposals_at(merged, 0), ElementsAre(std::pair(5, 0), std::pair(5, -1)));
}

TEST(TokenTree, WhatPruningLeavesCountsAsChosen) {
  TokenTree tree(1);
  tree.set_distribution(0, {{5, 6, 7}, {0.2, 0.3, 0.5}});
  const int dropped = tree.add(0, 5);
  tree.add(dropped, 8);
  const int left = tree.add(0, 6);
  tree.set_distribution(left, {{9}, {1.0}});
  tree.add(left, 9);
  tree.keep(std::vector<uint8_t>{1, 0, 1, 1, 1});
  EXPECT_THAT(tree.tokens(), ElementsAre(1, 6, 9));
  EXPECT_THAT(tree.parents(), ElementsAre(-1, 0, 1));
  EXPECT_THAT(proposals_at(tree, 0), ElementsAre(std::pair(6, -1)));
  EXPECT_EQ(tree.children_kind(0), ChildrenKind::kChosen);
  EXPECT_EQ(tree.children_kind(1), ChildrenKind::kChosen);
  EXPECT_THAT(proposals_at(tree, 1), ElementsAre(std::pair(9, -1)));
}

TEST(Verdict, ClearForgetsEverything) {
  Verdict verdict{{0}, {3}, {TokenOrigin::kPlain}, {NodeFate::kAccepted}, {7}};
  verdict.clear();
  EXPECT_TRUE(verdict.path.empty() && verdict.tokens.empty());
  EXPECT_TRUE(verdict.origins.empty() && verdict.fates.empty() && verdict.choices.empty());
}

}  // namespace
}  // namespace outrider
