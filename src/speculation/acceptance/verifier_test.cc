// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace outrider {
namespace {

using testing::ElementsAre;

constexpr NodeFate kRejected = NodeFate::kRejected;
constexpr NodeFate kUnreached = NodeFate::kUnreached;
constexpr TokenOrigin kPlain = TokenOrigin::kPlain;
constexpr TokenOrigin kRecovered = TokenOrigin::kRecovered;
constexpr TokenOrigin kBonus = TokenOrigin::kBonus;

// Every uniform number is `u`, and a coupled pick is the inverse CDF at `u`. Records the positions of the
// draws.
class FixedRandomness final : public Randomness {
 public:
  explicit FixedRandomness(double u) : u_(u) {}

  TokenId coupled_pick(const Distribution& distribution, int64_t position) override {
    positions.push_back(position);
    return distribution.tokens[inverse_cdf(distribution.probabilities, u_)];
  }
  std::vector<TokenId> coupled_top(const Distribution& distribution, int64_t position,
                                   int /*count*/) override {
    return {coupled_pick(distribution, position)};
  }
  size_t categorical(std::span<const double> weights, int64_t position, RandomPurpose /*purpose*/,
                     uint64_t /*draw*/) override {
    positions.push_back(position);
    return inverse_cdf(weights, u_);
  }
  bool bernoulli(double p, int64_t position, uint64_t /*draw*/) override {
    positions.push_back(position);
    return passes(p, u_);
  }

  std::vector<int64_t> positions;

 private:
  double u_;
};

const double kLastUniform = std::nextafter(1.0, 0.0);
constexpr AcceptanceRule kRules[] = {AcceptanceRule::kCoupled, AcceptanceRule::kRejection};

Distribution certain(TokenId token) { return {{token}, {1.0}}; }

// The target's distribution by node, for the nodes that can be reached.
Verdict verdict_of(const TokenTree& tree, const std::vector<Distribution>& distributions, AcceptanceRule rule,
                   Randomness& randomness) {
  Verdict verdict;
  const auto target_distribution = [&](int node) -> const Distribution& {
    return distributions.at(static_cast<size_t>(node));
  };
  verify({&tree, target_distribution, 100, rule, &randomness}, verdict);
  return verdict;
}

Verdict verdict_of(const TokenTree& tree, const std::vector<Distribution>& distributions, AcceptanceRule rule,
                   double u = 0.5) {
  FixedRandomness randomness(u);
  return verdict_of(tree, distributions, rule, randomness);
}

TEST(Verify, WithoutDraftTheTargetChoosesOneToken) {
  for (const AcceptanceRule rule : kRules) {
    const Verdict verdict = verdict_of(TokenTree(1), {certain(7)}, rule);
    EXPECT_THAT(verdict.path, ElementsAre(0));
    EXPECT_THAT(verdict.tokens, ElementsAre(7));
    EXPECT_THAT(verdict.origins, ElementsAre(kPlain));
    EXPECT_THAT(verdict.fates, ElementsAre(NodeFate::kAccepted));
  }
}

TEST(Verify, AllAcceptedEndsWithABonus) {
  TokenTree tree(1);
  tree.add(tree.add(0, 7), 8);
  for (const AcceptanceRule rule : kRules) {
    const Verdict verdict = verdict_of(tree, {certain(7), certain(8), certain(9)}, rule);
    EXPECT_THAT(verdict.path, ElementsAre(0, 1, 2));
    EXPECT_THAT(verdict.tokens, ElementsAre(7, 8, 9));
    EXPECT_THAT(verdict.origins, ElementsAre(TokenOrigin::kAccepted, TokenOrigin::kAccepted, kBonus));
    EXPECT_THAT(verdict.fates, ElementsAre(NodeFate::kAccepted, NodeFate::kAccepted, NodeFate::kAccepted));
  }
}

TEST(Verify, ARejectedChainEndsWithARecoveredToken) {
  TokenTree tree(1);
  tree.add(tree.add(tree.add(0, 7), 8), 9);
  for (const AcceptanceRule rule : kRules) {
    const Verdict verdict = verdict_of(tree, {certain(7), certain(5)}, rule);
    EXPECT_THAT(verdict.path, ElementsAre(0, 1));
    EXPECT_THAT(verdict.tokens, ElementsAre(7, 5));
    EXPECT_THAT(verdict.origins, ElementsAre(TokenOrigin::kAccepted, kRecovered));
    EXPECT_THAT(verdict.fates, ElementsAre(NodeFate::kAccepted, NodeFate::kAccepted, kRejected, kUnreached));
  }
}

TEST(Verify, FatesOfSiblingsAndTheirDescendants) {
  TokenTree tree(1);
  const int first = tree.add(0, 10);
  const int second = tree.add(0, 11);
  const int third = tree.add(0, 12);
  tree.add(first, 20);
  const int below_second = tree.add(second, 20);
  tree.add(third, 20);
  for (const AcceptanceRule rule : kRules) {
    std::vector<Distribution> distributions(7);
    distributions[0] = certain(11);
    distributions[static_cast<size_t>(second)] = certain(20);
    distributions[static_cast<size_t>(below_second)] = certain(30);
    const Verdict verdict = verdict_of(tree, distributions, rule);
    EXPECT_THAT(verdict.path, ElementsAre(0, second, below_second));
    EXPECT_THAT(verdict.tokens, ElementsAre(11, 20, 30));
    EXPECT_THAT(verdict.fates, ElementsAre(NodeFate::kAccepted, kRejected, NodeFate::kAccepted, kUnreached,
                                           kUnreached, NodeFate::kAccepted, kUnreached));
  }
}

TEST(Verify, AsksForTheDistributionOfReachedNodesInPathOrder) {
  TokenTree tree(1);
  tree.add(0, 10);
  const int accepted = tree.add(0, 11);
  const int next = tree.add(accepted, 12);
  for (const AcceptanceRule rule : kRules) {
    FixedRandomness randomness(0.5);
    Verdict verdict;
    std::vector<int> asked;
    const Distribution distributions[] = {certain(11), {}, certain(12), certain(13)};
    const auto target_distribution = [&](int node) -> const Distribution& {
      asked.push_back(node);
      return distributions[node];
    };
    verify({&tree, target_distribution, 100, rule, &randomness}, verdict);
    EXPECT_THAT(asked, ElementsAre(0, accepted, next));
  }
}

TEST(Verify, DrawsAtThePositionOfTheTokenChosen) {
  TokenTree tree(1);
  tree.add(tree.add(0, 7), 8);
  for (const AcceptanceRule rule : kRules) {
    FixedRandomness randomness(0.5);
    verdict_of(tree, {certain(7), certain(8), certain(9)}, rule, randomness);
    EXPECT_THAT(randomness.positions, ElementsAre(100, 101, 102));
  }
}

TEST(Verify, AnEmptyTargetDistributionEndsTheWalk) {
  TokenTree tree(1);
  tree.add(tree.add(0, 7), 0);
  for (const AcceptanceRule rule : kRules) {
    const Verdict verdict = verdict_of(tree, {certain(7), {}}, rule);
    EXPECT_THAT(verdict.tokens, ElementsAre(7, 0));
    EXPECT_THAT(verdict.origins, ElementsAre(TokenOrigin::kAccepted, kRecovered));
    EXPECT_THAT(verdict.fates, ElementsAre(NodeFate::kAccepted, NodeFate::kAccepted, kRejected));
  }
}

TEST(Verify, ForgetsThePreviousVerdict) {
  TokenTree tree(1);
  tree.add(0, 7);
  FixedRandomness randomness(0.5);
  Verdict verdict;
  const Distribution distribution = certain(3);
  const VerifyArgs args{&tree, [&](int) -> const Distribution& { return distribution; }, 1,
                        AcceptanceRule::kCoupled, &randomness};
  verify(args, verdict);
  verify(args, verdict);
  EXPECT_EQ(verdict.tokens.size(), 1u);
  EXPECT_EQ(verdict.fates.size(), 2u);
}

TEST(VerifyByRejection, ImpossibleTokensNeverPassAtTheEdgesOfTheUniform) {
  const Distribution target{{1, 2, 3}, {0.0, 0.5, 0.5}};
  for (const bool sampled : {false, true}) {
    TokenTree tree;
    if (sampled) tree.set_distribution(0, {{1, 4}, {0.5, 0.5}});
    tree.add(0, 1);  // probability 0 in the target's distribution
    tree.add(0, 4);  // not in the target's distribution
    for (const double u : {0.0, kLastUniform}) {
      const Verdict verdict = verdict_of(tree, {target}, AcceptanceRule::kRejection, u);
      EXPECT_THAT(verdict.path, ElementsAre(0));
      EXPECT_EQ(verdict.tokens[0], u == 0.0 ? 2 : 3);
    }
  }
}

TEST(VerifyByRejection, CertainTokensPassAtTheEdgesOfTheUniform) {
  TokenTree tree;
  tree.add(0, 1);
  for (const double u : {0.0, kLastUniform}) {
    EXPECT_THAT(verdict_of(tree, {certain(1), certain(2)}, AcceptanceRule::kRejection, u).path,
                ElementsAre(0, 1));
  }
  const Distribution distribution{{1, 2}, {0.3, 0.7}};
  tree.reset(0);
  tree.set_distribution(0, distribution);  // p = q
  tree.add(0, 1);
  EXPECT_THAT(verdict_of(tree, {distribution, certain(2)}, AcceptanceRule::kRejection, kLastUniform).path,
              ElementsAre(0, 1));
}

TEST(VerifyByRejection, RatioRuleByHand) {
  TokenTree tree;
  tree.set_distribution(0, {{1, 2}, {0.8, 0.2}});
  tree.add(0, 1);
  const std::vector<Distribution> distributions = {{{1, 2}, {0.4, 0.6}}, certain(9)};
  EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.49).tokens, ElementsAre(1, 9));
  EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.51).tokens, ElementsAre(2));
}

TEST(VerifyByRejection, PointMassRuleByHand) {
  TokenTree tree;
  tree.add(0, 1);
  tree.add(0, 2);
  const std::vector<Distribution> distributions = {{{1, 2, 3}, {0.5, 0.3, 0.2}}, certain(9), certain(9)};
  EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.49).tokens, ElementsAre(1, 9));
  EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.59).tokens, ElementsAre(2, 9));
  EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.61).tokens, ElementsAre(3));
}

// A broken distribution must not be used as q: the child would always be accepted.
TEST(VerifyByRejection, ChildrenOfABrokenDistributionCountAsChosen) {
  const std::vector<Distribution> distributions = {{{1, 2}, {0.4, 0.6}}, certain(9)};
  for (const Distribution& broken : {Distribution{{1, 2}, {0.1, 0.1}}, Distribution{{2}, {1.0}},
                                     Distribution{{1, 2}, {0.1, std::nan("")}}, Distribution{}}) {
    TokenTree tree;
    tree.set_distribution(0, broken);
    tree.add(0, 1);
    EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.39).tokens, ElementsAre(1, 9));
    EXPECT_THAT(verdict_of(tree, distributions, AcceptanceRule::kRejection, 0.41).tokens, ElementsAre(2));
  }
}

TEST(VerifyByRejection, GreedyDistributionsLeaveNothingToChance) {
  TokenTree chosen;
  chosen.add(0, 3);
  chosen.add(0, 7);
  TokenTree hit;
  hit.set_distribution(0, certain(7));
  hit.add(0, 7);
  TokenTree miss;
  miss.set_distribution(0, certain(3));
  miss.add(0, 3);
  TokenTree wide;
  wide.set_distribution(0, {{3, 7}, {0.99, 0.01}});
  wide.add(0, 3);
  wide.add(0, 7);
  for (const double u : {0.0, 0.3, 0.7, kLastUniform}) {
    for (const TokenTree& tree : {chosen, hit, miss, wide}) {
      const Verdict verdict =
          verdict_of(tree, {certain(7), certain(8), certain(8)}, AcceptanceRule::kRejection, u);
      EXPECT_EQ(verdict.tokens[0], 7);
      EXPECT_EQ(verdict.path.size(), tree.token(tree.size() - 1) == 7 ? 2u : 1u);
    }
  }
}

}  // namespace
}  // namespace outrider
