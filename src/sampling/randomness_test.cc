// SPDX-License-Identifier: Apache-2.0
#include "sampling/randomness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kDraws = 100000;  // finds a total variation of 0.02 in 64 cells with power 99.9 %

// Critical values of chi-square at a false alarm rate of 1e-9, by degrees of freedom.
const std::map<size_t, double> kCritical = {{1, 37.3}, {5, 51.2}, {7, 55.9}, {63, 155.1}, {255, 414.5}};

double chi_square(const std::vector<int>& observed, const std::vector<double>& distribution) {
  const double draws = std::accumulate(observed.begin(), observed.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < distribution.size(); ++i) {
    const double expected = draws * distribution[i];
    if (expected == 0 && observed[i] > 0) return HUGE_VAL;
    if (expected > 0) sum += (observed[i] - expected) * (observed[i] - expected) / expected;
  }
  return sum;
}

bool fits(const std::vector<int>& observed, const std::vector<double>& distribution) {
  return chi_square(observed, distribution) < kCritical.at(distribution.size() - 1);
}

// Moves 0.02 of total variation from the first cell to the last.
std::vector<double> shifted(std::vector<double> distribution) {
  distribution.front() -= 0.02;
  distribution.back() += 0.02;
  return distribution;
}

const Distribution kDistribution{{3, 7, 8, 20, 21, 40, 99, 1000},
                                 {0.3, 0.05, 0.2, 0.1, 0.05, 0.1, 0.15, 0.05}};

size_t index_of(const Distribution& distribution, TokenId token) {
  return static_cast<size_t>(std::find(distribution.tokens.begin(), distribution.tokens.end(), token) -
                             distribution.tokens.begin());
}

Distribution uniform_distribution(size_t size) {
  Distribution distribution;
  for (size_t i = 0; i < size; ++i) distribution.tokens.push_back(static_cast<TokenId>(i));
  distribution.probabilities.assign(size, 1.0 / static_cast<double>(size));
  return distribution;
}

TEST(InverseCdf, CutsTheUnitIntervalInOrder) {
  const std::vector<double> weights = {0.5, 0.0, 1.0, 0.5};
  EXPECT_EQ(inverse_cdf(weights, 0.0), 0u);
  EXPECT_EQ(inverse_cdf(weights, 0.2499), 0u);
  EXPECT_EQ(inverse_cdf(weights, 0.25), 2u);
  EXPECT_EQ(inverse_cdf(weights, 0.7499), 2u);
  EXPECT_EQ(inverse_cdf(weights, 0.75), 3u);
}

TEST(InverseCdf, NeverTakesWeightZeroAtTheEdges) {
  const double last = std::nextafter(1.0, 0.0);
  EXPECT_EQ(inverse_cdf(std::vector<double>{0, 0, 1, 0}, 0.0), 2u);
  EXPECT_EQ(inverse_cdf(std::vector<double>{0, 0, 1, 0}, last), 2u);
  EXPECT_EQ(inverse_cdf(std::vector<double>{0, 0.1, 0.2, 0.3, 0}, last), 3u);
  EXPECT_EQ(inverse_cdf(std::vector<double>{5e-324, 5e-324, 0}, last), 1u);
}

TEST(Passes, HoldsAtTheEdges) {
  const double last = std::nextafter(1.0, 0.0);
  EXPECT_FALSE(passes(0.0, 0.0));
  EXPECT_TRUE(passes(5e-324, 0.0));
  EXPECT_TRUE(passes(1.0, last));
  EXPECT_FALSE(passes(last, last));
}

TEST(CounterRandomness, CoupledPickIsTheArgMaxOfLogPPlusGumbel) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    CounterRandomness randomness(seed, 3);
    size_t best = 0;
    double best_score = -HUGE_VAL;
    for (size_t i = 0; i < kDistribution.tokens.size(); ++i) {
      const auto token = static_cast<uint64_t>(kDistribution.tokens[i]);
      const double score = std::log(kDistribution.probabilities[i]) +
                           random_gumbel({seed, 3, 17, RandomPurpose::kToken, token});
      if (score > best_score) best = i;
      best_score = std::max(best_score, score);
    }
    ASSERT_EQ(randomness.coupled_pick(kDistribution, 17), kDistribution.tokens[best]) << "seed " << seed;
  }
}

TEST(CounterRandomness, CoupledPickFollowsTheDistribution) {
  std::vector<int> by_seed(kDistribution.tokens.size());
  std::vector<int> by_position(kDistribution.tokens.size());
  std::vector<int> by_stream(kDistribution.tokens.size());
  CounterRandomness one(42, 0);
  for (int i = 0; i < kDraws; ++i) {
    CounterRandomness seeded(static_cast<uint64_t>(i), 0);
    CounterRandomness streamed(42, static_cast<uint64_t>(i));
    ++by_seed[index_of(kDistribution, seeded.coupled_pick(kDistribution, 5))];
    ++by_position[index_of(kDistribution, one.coupled_pick(kDistribution, i))];
    ++by_stream[index_of(kDistribution, streamed.coupled_pick(kDistribution, 5))];
  }
  for (const auto& observed : {by_seed, by_position, by_stream}) {
    EXPECT_TRUE(fits(observed, kDistribution.probabilities))
        << chi_square(observed, kDistribution.probabilities);
    EXPECT_FALSE(fits(observed, shifted(kDistribution.probabilities)))
        << "the control distribution was not told apart";
  }
}

TEST(CounterRandomness, CoupledTopIsADrawWithoutReplacement) {
  const Distribution distribution{{0, 1, 2}, {0.5, 0.3, 0.2}};
  std::vector<double> ordered_pairs;  // P(a, then b) = p(a) p(b) / (1 - p(a))
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      if (a == b) continue;
      ordered_pairs.push_back(distribution.probabilities[a] * distribution.probabilities[b] /
                              (1 - distribution.probabilities[a]));
    }
  }
  std::vector<int> observed(6);
  for (int i = 0; i < kDraws; ++i) {
    CounterRandomness randomness(7, static_cast<uint64_t>(i));
    const std::vector<TokenId> top = randomness.coupled_top(distribution, 0, 2);
    ASSERT_EQ(top[0], randomness.coupled_pick(distribution, 0));
    ++observed[static_cast<size_t>(2 * top[0] + top[1] - (top[1] > top[0] ? 1 : 0))];
  }
  EXPECT_TRUE(fits(observed, ordered_pairs)) << chi_square(observed, ordered_pairs);
  EXPECT_FALSE(fits(observed, shifted(ordered_pairs)));
}

TEST(CounterRandomness, CoupledTopHasAtMostTheTokensOfTheDistribution) {
  CounterRandomness randomness(1, 0);
  const Distribution distribution = uniform_distribution(3);
  std::vector<TokenId> all = randomness.coupled_top(distribution, 0, 10);
  std::sort(all.begin(), all.end());
  EXPECT_THAT(all, ElementsAre(0, 1, 2));
  EXPECT_THAT(randomness.coupled_top({{5}, {1.0}}, 0, 2), ElementsAre(5));
  EXPECT_THAT(randomness.coupled_top(distribution, 0, 0), IsEmpty());
}

TEST(CounterRandomness, EqualArrivalsGoToTheLowerId) {
  CounterRandomness randomness(1, 0);
  const Distribution unreachable{{2, 4, 6}, {0.0, 0.0, 0.0}};  // every arrival is infinite
  EXPECT_EQ(randomness.coupled_pick(unreachable, 0), 2);
  EXPECT_THAT(randomness.coupled_top(unreachable, 0, 2), ElementsAre(2, 4));
}

// Drafts agree with the target at least as often as 2408.07978 states: (1 - TV) / (1 + TV).
TEST(CounterRandomness, SharedNoiseMakesCloseDistributionsAgree) {
  const Distribution p{{0, 1, 2, 3}, {0.4, 0.3, 0.2, 0.1}};
  const Distribution q{{0, 1, 2, 3}, {0.3, 0.3, 0.2, 0.2}};
  int agreed = 0;
  for (int i = 0; i < kDraws; ++i) {
    CounterRandomness randomness(11, static_cast<uint64_t>(i));
    agreed += randomness.coupled_pick(p, 0) == randomness.coupled_pick(q, 0) ? 1 : 0;
  }
  EXPECT_GE(agreed, kDraws * (0.9 / 1.1) - 3 * std::sqrt(kDraws * 0.25));
}

TEST(CounterRandomness, CategoricalFollowsUnnormalisedWeights) {
  const std::vector<double> weights = {3, 1, 0, 2, 4, 1.5, 0.5, 4};
  std::vector<double> distribution = weights;
  for (double& p : distribution) p /= 16.0;
  std::vector<int> observed(weights.size());
  CounterRandomness randomness(9, 1);
  for (int i = 0; i < kDraws; ++i) ++observed[randomness.categorical(weights, i, RandomPurpose::kDraft, 0)];
  EXPECT_TRUE(fits(observed, distribution)) << chi_square(observed, distribution);
  EXPECT_FALSE(fits(observed, shifted(distribution)));
}

TEST(CounterRandomness, BernoulliPassesWithItsProbability) {
  CounterRandomness randomness(9, 1);
  std::vector<int> observed(2);
  for (int i = 0; i < kDraws; ++i) ++observed[randomness.bernoulli(0.3, i, 0) ? 0 : 1];
  EXPECT_TRUE(fits(observed, {0.3, 0.7}));
  EXPECT_FALSE(fits(observed, shifted({0.3, 0.7})));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(randomness.bernoulli(0.0, i, 0));
    EXPECT_TRUE(randomness.bernoulli(1.0, i, 0));
    EXPECT_TRUE(randomness.bernoulli(HUGE_VAL, i, 0));
  }
}

// Joint distribution of two draws that differ in one part of their key; `draw(i, which)` names a token
// below 16.
template <typename Draw>
void expect_independent(const char* what, Draw draw) {
  std::vector<int> observed(256);
  for (int i = 0; i < kDraws; ++i) ++observed[16 * draw(i, 0) + draw(i, 1)];
  const std::vector<double> distribution(256, 1.0 / 256);
  EXPECT_TRUE(fits(observed, distribution)) << what << ": " << chi_square(observed, distribution);
}

TEST(CounterRandomness, DrawsWithDifferentKeysAreIndependent) {
  const Distribution distribution = uniform_distribution(16);
  const auto pick = [&](uint64_t seed, uint64_t sample_index, int64_t position) {
    return static_cast<size_t>(CounterRandomness(seed, sample_index).coupled_pick(distribution, position));
  };
  const auto draw = [&](int position, RandomPurpose purpose, uint64_t index) {
    return CounterRandomness(3, 0).categorical(distribution.probabilities, position, purpose, index);
  };
  using enum RandomPurpose;
  expect_independent("seeds", [&](uint64_t i, uint64_t which) { return pick(2 * i + which, 0, 0); });
  expect_independent("streams", [&](uint64_t i, uint64_t which) { return pick(i, which, 0); });
  expect_independent("positions", [&](int i, int which) { return pick(1, 0, i + which); });
  expect_independent("draft, accept", [&](int i, int w) { return draw(i, w == 0 ? kDraft : kAccept, 0); });
  expect_independent("accept, residual",
                     [&](int i, int w) { return draw(i, w == 0 ? kAccept : kResidual, 0); });
  expect_independent("token, draft",
                     [&](int i, int w) { return w == 0 ? pick(3, 0, i) : draw(i, kDraft, 0); });
  expect_independent("draws", [&](int i, int w) { return draw(i, kDraft, static_cast<uint64_t>(w)); });
}

TEST(CounterRandomness, SeedStreamAndPositionChangeTheTokens) {
  const Distribution distribution = uniform_distribution(64);
  const auto text = [&](uint64_t seed, uint64_t sample_index, int64_t first) {
    CounterRandomness randomness(seed, sample_index);
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < 16; ++i) tokens.push_back(randomness.coupled_pick(distribution, first + i));
    return tokens;
  };
  std::set<std::vector<TokenId>> distinct;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t sample_index = 0; sample_index < 8; ++sample_index) {
      for (int64_t first = 0; first < 8; ++first) distinct.insert(text(seed, sample_index, first));
    }
  }
  EXPECT_EQ(distinct.size(), 512u);
  EXPECT_EQ(text(5, 6, 7), text(5, 6, 7));
}

}  // namespace
}  // namespace outrider
