// SPDX-License-Identifier: Apache-2.0
#include "speculation/acceptance/coupled_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace outrider {
namespace {

// A random distribution over token 0 and a share `share_held` of the other tokens below `size`.
Distribution random_distribution(std::mt19937& random, int size, double share_held) {
  std::exponential_distribution<double> weight;
  std::bernoulli_distribution is_held(share_held);
  Distribution distribution;
  double sum = 0.0;
  for (TokenId token = 0; token < size; ++token) {
    if (token > 0 && !is_held(random)) continue;
    distribution.tokens.push_back(token);
    distribution.probabilities.push_back(weight(random));
    sum += distribution.probabilities.back();
  }
  for (double& probability : distribution.probabilities) probability /= sum;
  return distribution;
}

std::vector<double> dense(const Distribution& distribution, int size, double temperature) {
  std::vector<double> probabilities(static_cast<size_t>(size), 0.0);
  double sum = 0.0;
  for (const double probability : distribution.probabilities) sum += std::pow(probability, 1.0 / temperature);
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    probabilities[static_cast<size_t>(distribution.tokens[i])] =
        std::pow(distribution.probabilities[i], 1.0 / temperature) / sum;
  }
  return probabilities;
}

double by_definition(const std::vector<double>& p, const std::vector<double>& q) {
  double agreement = 0.0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0.0 || q[i] == 0.0) continue;
    double sum = 0.0;
    for (size_t j = 0; j < p.size(); ++j) sum += std::max(p[j] / p[i], q[j] / q[i]);
    agreement += 1.0 / sum;
  }
  return agreement;
}

TEST(CoupledAgreement, IsTheSumOverAllPairs) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int size = 1 + round % 40;
    const Distribution p = random_distribution(random, size, 0.7), q = random_distribution(random, size, 0.7);
    const double temperature = 0.5 + 0.01 * round;
    EXPECT_NEAR(coupled_agreement(p, q, temperature),
                by_definition(dense(p, size, 1.0), dense(q, size, temperature)), 1e-9);
  }
}

TEST(CoupledAgreement, IsOneForEqualDistributionsAndNothingForDisjointOnes) {
  const Distribution p{{1, 4, 6}, {0.5, 0.3, 0.2}}, other{{0, 2}, {0.4, 0.6}};
  EXPECT_NEAR(coupled_agreement(p, p), 1.0, 1e-12);
  EXPECT_EQ(coupled_agreement(p, other), 0.0);
}

TEST(CoupledAgreement, IsWhatSharedNoiseGives) {
  std::mt19937 random(3);
  constexpr int kSize = 8, kDraws = 200000;
  const Distribution p = random_distribution(random, kSize, 1.0), q = random_distribution(random, kSize, 1.0);
  std::exponential_distribution<double> noise;
  int equal = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    int first_p = 0, first_q = 0;
    double min_p = 1e300, min_q = 1e300;
    for (int i = 0; i < kSize; ++i) {
      const double arrival = noise(random);
      const auto at = static_cast<size_t>(i);
      if (arrival / p.probabilities[at] < min_p) min_p = arrival / p.probabilities[at], first_p = i;
      if (arrival / q.probabilities[at] < min_q) min_q = arrival / q.probabilities[at], first_q = i;
    }
    equal += first_p == first_q ? 1 : 0;
  }
  const double share = static_cast<double>(equal) / kDraws;
  EXPECT_NEAR(coupled_agreement(p, q), share, 5.0 * std::sqrt(0.25 / kDraws));
}

TEST(CoupledAgreement, ADraftThatIsTooSureAgreesMoreWhenItIsHotter) {
  const Distribution p{{0, 1, 2}, {0.5, 0.3, 0.2}};
  Distribution sure = p;
  double sum = 0.0;
  for (double& probability : sure.probabilities) sum += probability = std::pow(probability, 2.0);
  for (double& probability : sure.probabilities) probability /= sum;
  EXPECT_LT(coupled_agreement(p, sure), 0.95);
  EXPECT_NEAR(coupled_agreement(p, sure, 2.0), 1.0, 1e-12);
}

}  // namespace
}  // namespace outrider
