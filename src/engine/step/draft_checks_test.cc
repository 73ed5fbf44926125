// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_checks.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

DraftRequest request_after(std::span<const TokenId> tokens, int max_draft_len, int max_nodes) {
  DraftRequest request;
  request.tokens = tokens;
  request.max_draft_len = max_draft_len;
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
  tree.set_distribution(good, {.tokens = {3}, .probabilities = {1.0}});
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

TEST(WithinLimits, CutsChildrenBeyondTheFirst) {
  const std::vector<TokenId> tokens = {5};
  TokenTree tree(5);
  const int first = tree.add(0, 1);
  tree.add(tree.add(0, 2), 3);
  tree.add(first, 4);
  tree.add(first, 6);
  DraftRequest request = request_after(tokens, 2, 9);
  EXPECT_EQ(within_limits(tree, request, 10).size(), 6);
  request.max_children = 1;
  EXPECT_FALSE(is_within_limits(tree, request, 10));
  const TokenTree kept = within_limits(tree, request, 10);
  ASSERT_EQ(kept.size(), 3);
  EXPECT_EQ(kept.token(1), 1);
  EXPECT_EQ(kept.token(2), 4);
  EXPECT_TRUE(is_within_limits(kept, request, 10));
}

TEST(WithinLimits, ATreeWithAnotherRootIsDropped) {
  const std::vector<TokenId> tokens = {4, 5};
  TokenTree tree(4);
  tree.add(0, 1);
  const TokenTree kept = within_limits(tree, request_after(tokens, 2, 3), 10);
  EXPECT_EQ(kept.size(), 1);
  EXPECT_EQ(kept.token(0), 5);
}

// Allows even ids, and 9, which is the end.
class Even final : public TokenConstraint {
 public:
  State start() override { return 0; }
  State advance(State state, TokenId token) override { return token % 2 == 0 ? state : kDead; }
  std::span<const uint64_t> allowed(State) override { return {&word_, 1}; }
  bool is_complete(State) override { return false; }

 private:
  uint64_t word_ = 0b10'0101'0101;
};

TEST(CutForbidden, LeavesWhatMayComeAndTheEnd) {
  Even even;
  const std::vector<TokenId> tokens = {5};
  DraftRequest request = request_after(tokens, 4, 9);
  TokenTree tree(5);
  const int odd = tree.add(0, 3);
  tree.add(odd, 2);
  const int good = tree.add(0, 4);
  tree.add(good, 7);
  const int end = tree.add(good, 9);
  tree.add(end, 2);  // no token may follow the end
  tree.add(good, 6);
  TokenTree untouched = tree;
  cut_forbidden(untouched, request);
  EXPECT_EQ(untouched.size(), tree.size());
  request.constraint = &even;
  request.constraint_state = even.start();
  cut_forbidden(tree, request);
  ASSERT_EQ(tree.size(), 4);
  EXPECT_EQ(std::vector<TokenId>(tree.tokens().begin(), tree.tokens().end()),
            (std::vector<TokenId>{5, 4, 9, 6}));
  EXPECT_EQ(std::vector<int>(tree.parents().begin(), tree.parents().end()), (std::vector<int>{-1, 0, 1, 1}));
}

TEST(CutForbidden, SparesDrawsUnderTheRejectionRuleAlone) {
  Even even;
  const std::vector<TokenId> tokens = {5};
  DraftRequest request = request_after(tokens, 4, 9);
  request.constraint = &even;
  request.constraint_state = even.start();
  for (const AcceptanceRule rule : {AcceptanceRule::kRejection, AcceptanceRule::kCoupled}) {
    for (const bool has_draws : {true, false}) {
      request.acceptance = rule;
      TokenTree tree(5);
      if (has_draws) tree.set_distribution(0, {.tokens = {3, 4}, .probabilities = {0.5, 0.5}});
      tree.add(0, 3);
      tree.add(0, 4);
      cut_forbidden(tree, request);
      EXPECT_EQ(tree.size(), rule == AcceptanceRule::kRejection && has_draws ? 3 : 2);
    }
  }
}

}  // namespace
}  // namespace outrider
