// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "speculation/acceptance/verifier.h"

namespace outrider {
namespace {

using testing::ElementsAre;

// H = 1.0297 nats, exp(-H) = 0.3571.
const Distribution kDistribution{{2, 5, 7, 9}, {0.1, 0.6, 0.25, 0.05}};
constexpr TokenId kBegin = 100;
constexpr TokenId kEnd = 101;

// A root with children; the target's distribution is the same after every node.
struct Case {
  std::vector<TokenId> children;
  SpeculativeOptions options = {};
  Distribution distribution = kDistribution;
  TokenId own = 5;  // the target's own token everywhere
};

TokenTree row_of(const std::vector<TokenId>& children) {
  TokenTree tree(1);
  for (const TokenId token : children) tree.add(0, token);
  return tree;
}

Verdict verdict_of(const TokenTree& tree, const Case& one, AcceptanceRule rule, ThinkingPhase thinking = {}) {
  Verdict verdict;
  const auto distribution = [&](int) -> const Distribution& { return one.distribution; };
  verify({.tree = &tree,
          .target_distribution = distribution,
          .rule = rule,
          .target_token = [&](int) { return one.own; },
          .options = &one.options,
          .untruncated_distribution = distribution,
          .thinking = thinking},
         verdict);
  return verdict;
}

TokenId first_token(const Case& one, AcceptanceRule rule) {
  return verdict_of(row_of(one.children), one, rule, {kBegin, kEnd, true}).tokens[0];
}

TokenId typical(const Case& one) { return first_token(one, AcceptanceRule::kTypical); }
TokenId relaxed(const Case& one) { return first_token(one, AcceptanceRule::kRelaxed); }

SpeculativeOptions typical_options(double epsilon, double delta) {
  SpeculativeOptions options;
  options.typical.epsilon = epsilon;
  options.typical.delta = delta;
  return options;
}

SpeculativeOptions relaxed_options(int top_k, double delta, RelaxedSpace space = RelaxedSpace::kProbability) {
  SpeculativeOptions options;
  options.relaxed.top_k = top_k;
  options.relaxed.delta = delta;
  options.relaxed.space = space;
  return options;
}

TEST(TypicalRule, TheThresholdIsTheSmallerOfTwo) {
  EXPECT_EQ(typical({.children = {2}}), 2);  // 0.1 > min(0.09, 0.3 * 0.3571)
  EXPECT_EQ(typical({.children = {9}}), 5);  // 0.05
  EXPECT_EQ(typical({.children = {2}, .options = typical_options(0.11, 0.3)}), 5);   // 0.1 < 0.107
  EXPECT_EQ(typical({.children = {2}, .options = typical_options(0.11, 0.27)}), 2);  // 0.1 > 0.096
  EXPECT_EQ(typical({.children = {2}, .options = typical_options(0.1, 1.0)}), 5);    // 0.1 is not above 0.1
}

TEST(TypicalRule, TheLikeliestSiblingThatPassesIsTaken) {
  EXPECT_EQ(typical({.children = {2, 7, 9}}), 7);
  EXPECT_EQ(typical({.children = {9, 2}}), 2);
}

TEST(TypicalRule, WithoutOneTheTargetsOwnTokenStandsDraftedOrNot) {
  const Case unlikely{.children = {2, 9}, .options = typical_options(0.2, 10.0), .own = 9};
  const Verdict verdict = verdict_of(row_of(unlikely.children), unlikely, AcceptanceRule::kTypical);
  EXPECT_THAT(verdict.tokens, ElementsAre(9, 9));
  EXPECT_THAT(verdict.path, ElementsAre(0, 2));
  EXPECT_EQ(typical({.children = {}, .own = 7}), 7);
}

TEST(TypicalRule, GreedyDistributionsAcceptTheirTokenAlone) {
  for (const TokenId drafted : {4, 6}) {
    EXPECT_EQ(typical({.children = {drafted}, .distribution = {{4}, {1.0}}, .own = 4}), 4);
  }
}

TEST(TypicalRule, WithAThresholdOfOneItIsTheCoupledRule) {
  for (const TokenId own : {2, 5, 7, 9}) {
    const Case one{.children = {2, 7}, .options = typical_options(1.0, 100.0), .own = own};
    const TokenTree tree = row_of(one.children);
    EXPECT_EQ(verdict_of(tree, one, AcceptanceRule::kTypical).path,
              verdict_of(tree, one, AcceptanceRule::kCoupled).path);
    EXPECT_EQ(typical(one), own);
  }
}

TEST(RelaxedRule, DeltaIsMeasuredInProbabilityOrItsLogarithm) {
  EXPECT_EQ(relaxed({.children = {7}, .options = relaxed_options(4, 0.34)}), 5);  // 0.25 < 0.6 - 0.34
  EXPECT_EQ(relaxed({.children = {7}, .options = relaxed_options(4, 0.36)}), 7);
  // log 0.6 - log 0.25 = 0.8755
  EXPECT_EQ(relaxed({.children = {7}, .options = relaxed_options(4, 0.87, RelaxedSpace::kLogProbability)}),
            5);
  EXPECT_EQ(relaxed({.children = {7}, .options = relaxed_options(4, 0.88, RelaxedSpace::kLogProbability)}),
            7);
}

// As in TensorRT-LLM, where delta limits log P(likeliest) - log P(token).
TEST(RelaxedRule, DeltaIsOneOfLogProbabilitiesUnlessToldOtherwise) {
  EXPECT_EQ(SpeculativeOptions().relaxed.space, RelaxedSpace::kLogProbability);
}

TEST(RelaxedRule, OnlyTheTopFewPass) {
  EXPECT_EQ(relaxed({.children = {2}, .options = relaxed_options(2, 1.0)}), 5);
  EXPECT_EQ(relaxed({.children = {2}, .options = relaxed_options(3, 1.0)}), 2);
  EXPECT_EQ(relaxed({.children = {8}, .options = relaxed_options(9, 1.0)}), 5);  // not in the distribution
  const Distribution even{{2, 5, 7}, {0.3, 0.3, 0.4}};                           // ties go to the lower id
  EXPECT_EQ(relaxed({.children = {5}, .options = relaxed_options(2, 1.0), .distribution = even, .own = 7}),
            7);
  EXPECT_EQ(relaxed({.children = {2}, .options = relaxed_options(2, 1.0), .distribution = even, .own = 7}),
            2);
}

TEST(RelaxedRule, TheTargetsOwnTokenComesFirstThenTheLikeliest) {
  const SpeculativeOptions wide = relaxed_options(4, 1.0);
  EXPECT_EQ(relaxed({.children = {2, 5, 7}, .options = wide}), 5);
  EXPECT_EQ(relaxed({.children = {9, 2, 7}, .options = wide}), 7);
  EXPECT_EQ(relaxed({.children = {5, 9}, .options = wide, .own = 9}), 9);
}

// Delta 0 and top-k 1 each allow the likeliest token only, whatever the tree.
TEST(RelaxedRule, WithDeltaZeroOrTopOneItIsGreedy) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    Case one;
    for (double& p : one.distribution.probabilities) p = 0.05 + std::uniform_real_distribution<>()(random);
    size_t largest = 0;
    for (size_t i = 1; i < 4; ++i)
      largest = one.distribution.probabilities[i] > one.distribution.probabilities[largest] ? i : largest;
    one.own = one.distribution.tokens[largest];
    TokenTree tree(1);
    for (int node = 0; node < 6; ++node)
      tree.add(static_cast<int>(random() % static_cast<unsigned>(tree.size())),
               one.distribution.tokens[random() % 4]);
    for (const SpeculativeOptions& options : {relaxed_options(4, 0.0), relaxed_options(1, 1.0)}) {
      one.options = options;
      const Verdict verdict = verdict_of(tree, one, AcceptanceRule::kRelaxed, {kBegin, kEnd, true});
      ASSERT_EQ(verdict.path, verdict_of(tree, one, AcceptanceRule::kCoupled).path);
      for (const TokenId token : verdict.tokens) ASSERT_EQ(token, one.own);
    }
  }
}

TEST(RelaxedRule, HoldsInTheThinkingPhaseAlone) {
  const Distribution distribution{{5, 7, kBegin, kEnd}, {0.4, 0.2, 0.2, 0.2}};
  const Case one{.children = {}, .options = relaxed_options(4, 1.0), .distribution = distribution};
  const auto chain = [](const std::vector<TokenId>& tokens) {
    TokenTree tree(1);
    int last = 0;
    for (const TokenId token : tokens) last = tree.add(last, token);
    return tree;
  };
  const auto accepted = [&](const std::vector<TokenId>& tokens, bool is_thinking) {
    return verdict_of(chain(tokens), one, AcceptanceRule::kRelaxed, {kBegin, kEnd, is_thinking}).path.size() -
           1;
  };
  EXPECT_EQ(accepted({7, 7}, true), 2u);
  EXPECT_EQ(accepted({7, 7}, false), 0u);
  EXPECT_EQ(accepted({5, 7}, false), 1u);
  EXPECT_EQ(accepted({7, kEnd, 7}, true), 2u) << "after the end token 7 is not the target's own";
  EXPECT_EQ(accepted({7, kEnd, 5, 5}, true), 4u);
  const Case begins{.children = {}, .options = one.options, .distribution = distribution, .own = kBegin};
  const auto path =
      verdict_of(chain({kBegin, 7, kEnd, 7}), begins, AcceptanceRule::kRelaxed, {kBegin, kEnd, false}).path;
  EXPECT_EQ(path.size() - 1, 3u) << "begin opens the phase within one draft, end closes it";
}

TEST(ThinkingPhase, FollowsTheTokens) {
  ThinkingPhase phase{kBegin, kEnd};
  std::vector<bool> open;
  for (const TokenId token : {1, kBegin, 2, kBegin, kEnd, 3, kEnd, kBegin}) {
    phase.push(token);
    open.push_back(phase.is_open);
  }
  EXPECT_THAT(open, ElementsAre(false, true, true, true, false, false, false, true));
}

}  // namespace
}  // namespace outrider
