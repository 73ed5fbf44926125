// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_checks.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

DraftRequest request_after(std::span<const TokenId> tokens, int max_depth, int max_nodes) {
  DraftRequest request;
  request.tokens = tokens;
  request.max_depth = max_depth;
  request.max_nodes = max_nodes;
  return request;
}

TEST(WithinLimits, LeavesAGoodTreeAlone) {
  const std::vector<TokenId> tokens = {5};
  TokenTree tree(5);
  tree.add(tree.add(0, 1), 2);
  tree.add(0, 3);
  const TokenTree kept = within_limits(tree, request_after(tokens, 2, 3), 10);
  EXPECT_EQ(kept.size(), 4);
  EXPECT_EQ(kept.parent(2), 1);
  EXPECT_EQ(kept.token(3), 3);
}

TEST(WithinLimits, CutsDepthCountAndForeignTokensWithTheirDescendants) {
  const std::vector<TokenId> tokens = {5};
  TokenTree tree(5);
  const int foreign = tree.add(0, 10);  // outside a vocabulary of 10
  tree.add(foreign, 1);
  tree.add(0, -1);
  const int good = tree.add(0, 2);
  tree.set_law(good, {.tokens = {3}, .probabilities = {1.0}});
  const int deep = tree.add(good, 3);
  tree.add(deep, 4);  // depth 3
  tree.add(0, 6);
  tree.add(0, 7);
  const TokenTree kept = within_limits(tree, request_after(tokens, 2, 3), 10);
  ASSERT_EQ(kept.size(), 4);
  EXPECT_EQ(kept.token(1), 2);
  EXPECT_EQ(kept.token(2), 3);
  EXPECT_EQ(kept.parent(2), 1);
  EXPECT_EQ(kept.token(3), 6);
  EXPECT_EQ(kept.children_kind(1), ChildrenKind::kChosen);
}

TEST(WithinLimits, ATreeWithAnotherRootIsDropped) {
  const std::vector<TokenId> tokens = {4, 5};
  TokenTree tree(4);
  tree.add(0, 1);
  const TokenTree kept = within_limits(tree, request_after(tokens, 2, 3), 10);
  EXPECT_EQ(kept.size(), 1);
  EXPECT_EQ(kept.token(0), 5);
}

}  // namespace
}  // namespace outrider
