// SPDX-License-Identifier: Apache-2.0
#include "outrider/token_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_TRUE(tree.law(0).empty());
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

TEST(TokenTree, RemembersTheLawOfEachNode) {
  TokenTree tree(1);
  const int child = tree.add(0, 10);
  tree.set_law(child, {{7}, {1.0}});
  tree.set_law(0, {{10, 11}, {0.5, 0.5}});
  EXPECT_EQ(tree.children_kind(child), ChildrenKind::kSampled);
  EXPECT_THAT(tree.law(child).tokens, ElementsAre(7));
  EXPECT_THAT(tree.law(0).tokens, ElementsAre(10, 11));
  tree.set_law(child, {{8}, {1.0}});
  EXPECT_THAT(tree.law(child).tokens, ElementsAre(8));
  EXPECT_THAT(tree.law(0).tokens, ElementsAre(10, 11));
}

TEST(TokenTree, ResetForgetsEverything) {
  TokenTree tree(1);
  tree.set_law(tree.add(0, 10), {{7}, {1.0}});
  tree.reset(5);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.token(0), 5);
  const int child = tree.add(0, 10);
  EXPECT_EQ(tree.children_kind(child), ChildrenKind::kChosen);
}

TEST(Verdict, ClearForgetsEverything) {
  Verdict verdict{{0}, {3}, {TokenOrigin::kPlain}, {NodeFate::kAccepted}};
  verdict.clear();
  EXPECT_TRUE(verdict.path.empty() && verdict.tokens.empty());
  EXPECT_TRUE(verdict.origins.empty() && verdict.fates.empty());
}

}  // namespace
}  // namespace outrider
