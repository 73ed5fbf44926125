// SPDX-License-Identifier: Apache-2.0
#include "drafters/ngram/ngram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<TokenId>;

// (1, 2) was followed by (5, 6), then by (5, 7); a single 2 by (9, 8) before.
const Tokens kText = {2, 9, 8, 1, 2, 5, 6, 1, 2, 5, 7, 1, 2};

SpeculativeOptions options_with(TreeKind tree) {
  SpeculativeOptions options;
  options.max_draft_len = 2;
  options.tree.kind = tree;
  return options;
}

TokenTree draft(const SpeculativeOptions& options, int depth, int nodes) {
  auto drafter = make_ngram_drafter(options, {});
  EXPECT_TRUE(drafter.ok());
  const DraftRequest request{.tokens = kText, .prompt_length = 5, .max_draft_len = depth, .max_nodes = nodes};
  TokenTree tree(kText.back());
  EXPECT_TRUE((*drafter)->draft({&request, 1}, {&tree, 1}).ok());
  return tree;
}

Tokens drafted(const TokenTree& tree) { return {tree.tokens().begin() + 1, tree.tokens().end()}; }
std::vector<int> parents(const TokenTree& tree) { return {tree.parents().begin() + 1, tree.parents().end()}; }

TEST(NGram, AChainIsOneContinuation) {
  SpeculativeOptions options = options_with(TreeKind::kChain);
  EXPECT_THAT(drafted(draft(options, 2, 10)), ElementsAre(5, 6));
  options.ngram.is_use_oldest = false;
  EXPECT_THAT(drafted(draft(options, 2, 10)), ElementsAre(5, 7));
  EXPECT_THAT(drafted(draft(options, 1, 10)), ElementsAre(5));
}

TEST(NGram, ATreeHoldsAllContinuationsLongestPatternFirst) {
  SpeculativeOptions options = options_with(TreeKind::kDynamic);
  const TokenTree oldest = draft(options, 2, 10);
  EXPECT_THAT(drafted(oldest), ElementsAre(5, 6, 7, 9, 8));
  EXPECT_THAT(parents(oldest), ElementsAre(0, 1, 1, 0, 4));
  options.ngram.is_use_oldest = false;
  const TokenTree newest = draft(options, 2, 10);
  EXPECT_THAT(drafted(newest), ElementsAre(5, 7, 6, 9, 8));
  EXPECT_THAT(parents(newest), ElementsAre(0, 1, 1, 0, 4));
  options.ngram.is_keep_all = false;
  EXPECT_THAT(drafted(draft(options, 2, 10)), ElementsAre(5, 7));
}

TEST(NGram, ATreeKeepsTheLimits) {
  const SpeculativeOptions options = options_with(TreeKind::kDynamic);
  EXPECT_THAT(drafted(draft(options, 2, 4)), ElementsAre(5, 6, 7, 9));
  EXPECT_THAT(drafted(draft(options, 1, 10)), ElementsAre(5, 9));
}

}  // namespace
}  // namespace outrider
