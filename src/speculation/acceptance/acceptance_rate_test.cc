// SPDX-License-Identifier: Apache-2.0
// Acceptance rates of one level of a tree by rule and width.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sampling/distribution.h"
#include "speculation/acceptance/exact_distribution_test.h"

namespace outrider {
namespace {

// A random pair of distributions; their logits differ by noise of size `error`.
struct Distributions {
  Distribution p;
  Distribution q;
};

Distributions random_distributions(std::mt19937& random, int vocabulary, double error) {
  std::normal_distribution<> normal;
  Distributions distributions;
  double p_sum = 0.0;
  double q_sum = 0.0;
  for (int token = 0; token < vocabulary; ++token) {
    const double logit = 2.0 * normal(random);
    const double p = std::exp(logit);
    const double q = std::exp(logit + error * normal(random));
    distributions.p.tokens.push_back(token);
    distributions.p.probabilities.push_back(p);
    distributions.q.probabilities.push_back(q);
    p_sum += p;
    q_sum += q;
  }
  distributions.q.tokens = distributions.p.tokens;
  for (double& p : distributions.p.probabilities) p /= p_sum;
  for (double& q : distributions.q.probabilities) q /= q_sum;
  return distributions;
}

struct Level {
  int width = 1;
  AcceptanceRule rule = AcceptanceRule::kRejection;
  ChildrenKind kind = ChildrenKind::kSampled;
};

TokenTree draft(const Distributions& distributions, const Level& level, Randomness& randomness) {
  TokenTree tree;
  propose({.tree = &tree,
           .distribution = &distributions.q,
           .count = level.width,
           .rule = level.rule,
           .kind = level.kind,
           .randomness = &randomness});
  return tree;
}

bool is_accepted(const Distributions& distributions, const TokenTree& tree, AcceptanceRule rule,
                 Randomness& randomness) {
  static const Distribution kCertain{{0}, {1.0}};  // distribution of the level below
  Verdict verdict;
  verify({.tree = &tree,
          .target_distribution = [&](int node) -> const Distribution& {
            return node == 0 ? distributions.p : kCertain;
          },
          .rule = rule,
          .randomness = &randomness},
         verdict);
  return verdict.path.size() > 1;
}

// Exact probabilities that a child is accepted: by multi-step speculative sampling, and by naive matching,
// which draws a token from the target and looks for it among the same children.
struct Rates {
  double multi_step = 0.0;
  double naive = 0.0;
};

Rates exact_rates(const Distributions& distributions, const Level& level) {
  Rates rates;
  ForkingRandomness randomness;
  while (randomness.next()) {
    const TokenTree tree = draft(distributions, level, randomness);
    if (is_accepted(distributions, tree, level.rule, randomness)) rates.multi_step += randomness.weight();
  }
  ForkingRandomness drafts;
  while (drafts.next()) {
    const TokenTree tree = draft(distributions, level, drafts);
    for (int node = 1; node < tree.size(); ++node)
      rates.naive += drafts.weight() * probability(distributions.p, tree.token(node));
  }
  return rates;
}

// SpecInfer's theorem 4.3 (2305.09781).
TEST(AcceptanceRate, MultiStepSamplingAcceptsAtLeastAsOftenAsNaiveMatching) {
  std::mt19937 random(43);
  int better = 0;
  constexpr int kPairs = 100;
  for (int pair = 0; pair < kPairs; ++pair) {
    const Distributions distributions = random_distributions(random, 2 + pair % 4, pair % 3 == 0 ? 0.3 : 1.5);
    for (const ChildrenKind kind : {ChildrenKind::kSampled, ChildrenKind::kIndependent}) {
      for (int width = 1; width <= 4; ++width) {
        const Rates rates = exact_rates(distributions, {width, AcceptanceRule::kRejection, kind});
        ASSERT_GE(rates.multi_step, rates.naive - 1e-12) << "pair " << pair << ", width " << width;
        better += width == 1 && rates.multi_step > rates.naive + 0.01 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(better, kPairs);  // out of 2 * kPairs comparisons of width 1
}

double sampled_rate(const Distributions& distributions, const Level& level, int runs) {
  int accepted = 0;
  for (int run = 0; run < runs; ++run) {
    CounterRandomness randomness(static_cast<uint64_t>(run), 0);
    const TokenTree tree = draft(distributions, level, randomness);
    accepted += is_accepted(distributions, tree, level.rule, randomness) ? 1 : 0;
  }
  return static_cast<double>(accepted) / runs;
}

// The coupled rule accepts a little less on chains and more from width 3 on.
TEST(AcceptanceRate, CoupledBeatsRejectionFromWidthThreeOn) {
  std::mt19937 random(7);
  constexpr int kPairs = 40;
  constexpr int kRuns = 250;
  double gain[5] = {};  // by width: rate of coupled minus rate of rejection
  for (int pair = 0; pair < kPairs; ++pair) {
    const Distributions distributions = random_distributions(random, 100, 1.0);
    for (const int width : {1, 3, 4}) {
      gain[width] += (sampled_rate(distributions, {width, AcceptanceRule::kCoupled}, kRuns) -
                      sampled_rate(distributions, {width, AcceptanceRule::kRejection}, kRuns)) /
                     kPairs;
    }
  }
  RecordProperty("gain_at_widths_1_3_4",
                 std::to_string(gain[1]) + " " + std::to_string(gain[3]) + " " + std::to_string(gain[4]));
  EXPECT_LT(gain[1], -0.01);
  EXPECT_GT(gain[1], -0.12);
  EXPECT_GT(gain[3], 0.01);
  EXPECT_GT(gain[4], 0.015);
}

}  // namespace
}  // namespace outrider
