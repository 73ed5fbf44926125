// SPDX-License-Identifier: Apache-2.0
#include "cli/synthetic_drafter.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "speculation/tree/acceptance_estimates.h"

namespace outrider {
namespace {

constexpr TokenId kProposal = 99;
constexpr int64_t kVocabulary = 1000;

// Always proposes one token and records the requests that it gets.
class ConstantDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      seen.emplace_back(requests[i].tokens.begin(), requests[i].tokens.end());
      int node = 0;
      for (int depth = 0; depth < requests[i].max_draft_len; ++depth) node = trees[i].add(node, kProposal);
    }
    return {};
  }

  std::vector<std::vector<TokenId>> seen;

 private:
  DrafterTraits traits_{.name = "Constant", .emits_probabilities = true};
};

// Proposes as many tokens for a level as there is room for: 99, 98, and so on.
class WideDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      for (TokenId below = 0; below < requests[i].max_nodes; ++below) trees[i].add(0, kProposal - below);
    }
    return {};
  }

 private:
  DrafterTraits traits_{.name = "Wide"};
};

std::vector<TokenId> counted(size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

class SyntheticDrafterTest : public ::testing::Test {
 protected:
  SyntheticDrafter make(double rate) { return {inner_, rate, kVocabulary}; }

  // The tokens drafted below the root after `tokens`.
  static std::vector<TokenId> drafted(SyntheticDrafter& drafter, const std::vector<TokenId>& tokens,
                                      int depth) {
    static const SamplingParams kSampling;
    const DraftRequest request{
        .tokens = tokens, .max_draft_len = depth, .max_nodes = depth, .sampling = &kSampling};
    TokenTree tree(tokens.back());
    EXPECT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
    for (int node = 1; node < tree.size(); ++node) EXPECT_EQ(tree.parent(node), node - 1);
    return {tree.tokens().begin() + 1, tree.tokens().end()};
  }

  std::shared_ptr<ConstantDrafter> inner_ = std::make_shared<ConstantDrafter>();
};

TEST_F(SyntheticDrafterTest, AtRateOneDraftsWhatTheTargetWillSay) {
  SyntheticDrafter drafter = make(1);
  drafter.expect(counted(20));
  EXPECT_EQ(drafted(drafter, counted(5), 4), (std::vector<TokenId>{5, 6, 7, 8}));
  EXPECT_EQ(drafted(drafter, counted(18), 4), (std::vector<TokenId>{18, 19, kProposal, kProposal}));
}

TEST_F(SyntheticDrafterTest, AtRateZeroTheFirstTokenIsWrong) {
  SyntheticDrafter drafter = make(0);
  drafter.expect(counted(200));
  EXPECT_EQ(drafted(drafter, counted(5), 2), (std::vector<TokenId>{kProposal, kProposal}));
  EXPECT_EQ(drafted(drafter, counted(99), 1), (std::vector<TokenId>{100}));  // the proposal would be right
}

TEST_F(SyntheticDrafterTest, KeepsProposalsForSequencesItDoesNotExpect) {
  SyntheticDrafter drafter = make(1);
  drafter.expect(counted(20));
  EXPECT_EQ(drafted(drafter, {7, 7}, 2), (std::vector<TokenId>{kProposal, kProposal}));
}

TEST_F(SyntheticDrafterTest, TheInnerDrafterSeesTheReplacedTokensLevelByLevel) {
  SyntheticDrafter drafter = make(1);
  drafter.expect(counted(20));
  drafted(drafter, counted(5), 3);
  EXPECT_EQ(inner_->seen, (std::vector<std::vector<TokenId>>{counted(5), counted(6), counted(7)}));
}

TEST_F(SyntheticDrafterTest, HitsItsRate) {
  SyntheticDrafter drafter = make(0.7);
  const std::vector<TokenId> expected(5000, 1);
  drafter.expect(expected);
  int right = 0;
  for (size_t length = 1; length < 4001; ++length) {
    right += drafted(drafter, std::vector<TokenId>(length, 1), 1).front() == 1 ? 1 : 0;
  }
  EXPECT_NEAR(right / 4000.0, 0.7, 0.03);  // within four standard deviations
}

TEST_F(SyntheticDrafterTest, BesideTheChainDraftsWrongTokens) {
  static const SamplingParams kSampling;
  SyntheticDrafter drafter(std::make_shared<WideDrafter>(), 1, kVocabulary);
  drafter.expect(counted(200));
  const std::vector<TokenId> tokens = counted(97);  // the second level's right token is proposed, too
  const DraftRequest request{.tokens = tokens, .max_draft_len = 3, .max_nodes = 9, .sampling = &kSampling};
  TokenTree tree(tokens.back());
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  const std::vector<TokenId> drafted(tree.tokens().begin() + 1, tree.tokens().end());
  EXPECT_EQ(drafted, (std::vector<TokenId>{97, 98, 98, 97, 99, 98, 97}));
  const auto is_replaced = [](int node) { return node == 1 || node == 3 || node == 5; };
  for (int node = 1; node < tree.size(); ++node)
    EXPECT_NEAR(tree.probability(node), is_replaced(node) ? 0.99 : 0.01 / 3, 1e-12) << node;
  std::vector<int> parents;
  for (int node = 1; node < tree.size(); ++node) parents.push_back(tree.parent(node));
  EXPECT_EQ(parents, (std::vector<int>{0, 0, 1, 1, 3, 3, 3}));
}

// The second level tells how long a level takes.
TEST_F(SyntheticDrafterTest, EndsBeforeALevelThatIsNotWorthItsTime) {
  static const SamplingParams kSampling;
  SyntheticDrafter drafter = make(0.5);
  const std::vector<TokenId> tokens = counted(5);
  AcceptanceEstimates estimates;
  const DraftRequest request{.tokens = tokens,
                             .max_draft_len = 4,
                             .max_nodes = 4,
                             .sampling = &kSampling,
                             .rate = 1e12,
                             .estimates = &estimates};
  for (const int levels : {2, 1}) {
    TokenTree tree(tokens.back());
    ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
    EXPECT_EQ(tree.drafted(), levels);
  }
}

TEST_F(SyntheticDrafterTest, DoesNotPromiseProbabilities) {
  EXPECT_FALSE(make(0.5).traits().emits_probabilities);
  EXPECT_EQ(make(0.5).traits().name, "Constant");
}

}  // namespace
}  // namespace outrider
