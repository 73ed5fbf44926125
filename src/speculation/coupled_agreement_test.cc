// SPDX-License-Identifier: Apache-2.0
#include "speculation/coupled_agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace outrider {
namespace {

// A random law over some of `size` tokens.
Distribution random_law(std::mt19937& random, int size, double share_held) {
  std::exponential_distribution<double> weight;
  std::bernoulli_distribution is_held(share_held);
  Distribution law;
  double sum = 0.0;
  for (TokenId token = 0; token < size; ++token) {
    if (token > 0 && !is_held(random)) continue;
    law.tokens.push_back(token);
    law.probabilities.push_back(weight(random));
    sum += law.probabilities.back();
  }
  for (double& probability : law.probabilities) probability /= sum;
  return law;
}

std::vector<double> dense(const Distribution& law, int size, double temperature) {
  std::vector<double> probabilities(static_cast<size_t>(size), 0.0);
  double sum = 0.0;
  for (const double probability : law.probabilities) sum += std::pow(probability, 1.0 / temperature);
  for (size_t i = 0; i < law.tokens.size(); ++i) {
    probabilities[static_cast<size_t>(law.tokens[i])] =
        std::pow(law.probabilities[i], 1.0 / temperature) / sum;
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
    const Distribution p = random_law(random, size, 0.7), q = random_law(random, size, 0.7);
    const double temperature = 0.5 + 0.01 * round;
    EXPECT_NEAR(coupled_agreement(p, q, temperature),
                by_definition(dense(p, size, 1.0), dense(q, size, temperature)), 1e-9);
  }
}

TEST(CoupledAgreement, IsOneForEqualLawsAndNothingForDisjointOnes) {
  const Distribution p{{1, 4, 6}, {0.5, 0.3, 0.2}}, other{{0, 2}, {0.4, 0.6}};
  EXPECT_NEAR(coupled_agreement(p, p), 1.0, 1e-12);
  EXPECT_EQ(coupled_agreement(p, other), 0.0);
}

TEST(CoupledAgreement, IsWhatSharedNoiseGives) {
  std::mt19937 random(3);
  constexpr int kSize = 8, kDraws = 200000;
  const Distribution p = random_law(random, kSize, 1.0), q = random_law(random, kSize, 1.0);
  std::exponential_distribution<double> noise;
  int equal = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    int first_p = 0, first_q = 0;
    double least_p = 1e300, least_q = 1e300;
    for (int i = 0; i < kSize; ++i) {
      const double arrival = noise(random);
      const auto at = static_cast<size_t>(i);
      if (arrival / p.probabilities[at] < least_p) least_p = arrival / p.probabilities[at], first_p = i;
      if (arrival / q.probabilities[at] < least_q) least_q = arrival / q.probabilities[at], first_q = i;
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
