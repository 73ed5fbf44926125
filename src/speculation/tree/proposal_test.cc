// SPDX-License-Identifier: Apache-2.0
#include "speculation/tree/proposal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Distribution kDistribution{{2, 5, 7, 9}, {0.4, 0.3, 0.2, 0.1}};

struct Proposed {
  TokenTree tree;
  int count;

  std::vector<TokenId> tokens() const { return {tree.tokens().begin() + 1, tree.tokens().end()}; }
};

Proposed propose_from(const Distribution& distribution, int count, AcceptanceRule rule, uint64_t seed = 1) {
  CounterRandomness randomness(seed, 0);
  Proposed proposed;
  proposed.count = propose({.tree = &proposed.tree,
                            .distribution = &distribution,
                            .count = count,
                            .position = 11,
                            .rule = rule,
                            .randomness = &randomness});
  return proposed;
}

TEST(Propose, CoupledTakesTheTopOfTheTargetsOwnNoise) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    CounterRandomness randomness(seed, 0);
    const Proposed proposed = propose_from(kDistribution, 3, AcceptanceRule::kCoupled, seed);
    EXPECT_THAT(proposed.tokens(), ElementsAreArray(randomness.coupled_top(kDistribution, 11, 3)));
    EXPECT_EQ(proposed.tree.token(1), randomness.coupled_pick(kDistribution, 11));
  }
}

TEST(Propose, SetsTheDistributionTheChildrenWereDrawnFrom) {
  for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
    const Proposed proposed = propose_from(kDistribution, 2, rule);
    EXPECT_EQ(proposed.count, 2);
    EXPECT_EQ(proposed.tree.children_kind(0), ChildrenKind::kSampled);
    EXPECT_EQ(proposed.tree.distribution(0).tokens, kDistribution.tokens);
    EXPECT_EQ(proposed.tree.distribution(0).probabilities, kDistribution.probabilities);
  }
}

TEST(Propose, HasNoMoreChildrenThanTheDistributionHasTokens) {
  for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
    EXPECT_THAT(propose_from({{6}, {1.0}}, 3, rule).tokens(), ElementsAre(6));
    EXPECT_THAT(propose_from(kDistribution, 9, rule).tokens(), UnorderedElementsAre(2, 5, 7, 9));
    EXPECT_THAT(propose_from(kDistribution, 0, rule).tokens(), IsEmpty());
  }
}

TEST(Propose, DrawsOfTwoPurposesDiffer) {
  int differing = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    differing += propose_from(kDistribution, 1, AcceptanceRule::kCoupled, seed).tokens() !=
                         propose_from(kDistribution, 1, AcceptanceRule::kRejection, seed).tokens()
                     ? 1
                     : 0;
  }
  EXPECT_GT(differing, 30);
}

TEST(Propose, RefusesWhatIsNotADistribution) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
    for (const Distribution& broken :
         {Distribution{}, Distribution{{1, 2}, {0.0, 0.0}}, Distribution{{1, 2}, {0.5, nan}},
          Distribution{{1, 2}, {1.0, 1.0}}, Distribution{{2, 1}, {0.5, 0.5}}}) {
      const Proposed proposed = propose_from(broken, 2, rule);
      EXPECT_EQ(proposed.count, 0);
      EXPECT_THAT(proposed.tokens(), IsEmpty());
      EXPECT_EQ(proposed.tree.children_kind(0), ChildrenKind::kChosen);
    }
  }
}

}  // namespace
}  // namespace outrider
