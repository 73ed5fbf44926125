// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace outrider::logit_scan_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Few different values make ties; some are no numbers.
std::vector<float> random_logits(std::mt19937& random) {
  std::vector<float> logits(1 + random() % 400);
  for (float& logit : logits) {
    const auto kind = random() % 40;
    logit = kind == 0 ? kNan : kind == 1 ? -kInf : static_cast<float>(random() % 97) - 48;
  }
  if (random() % 8 == 0) std::fill(logits.begin(), logits.end(), random() % 2 == 0 ? kNan : -kInf);
  return logits;
}

std::vector<TokenId> ranked(const std::vector<float>& logits) {
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInf) tokens.push_back(static_cast<TokenId>(i));
  }
  std::stable_sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  return tokens;
}

TEST(LogitScan, AgreesWithAFullSort) {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    const std::vector<float> logits = random_logits(random);
    std::vector<TokenId> expected = ranked(logits);
    const LargestLogit largest = largest_logit(logits);
    ASSERT_EQ(largest.token, expected.empty() ? -1 : expected[0]);
    std::vector<TokenId> found = {7};
    const size_t k = 1 + random() % (logits.size() + 2);
    top_tokens(logits, k, found);
    std::sort(found.begin(), found.end());
    expected.resize(std::min(expected.size(), k));
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(found, expected) << "k " << k;

    const auto min = static_cast<float>(random() % 97) - 48;
    tokens_from(logits, min, found);
    expected.clear();
    for (size_t t = 0; t < logits.size(); ++t) {
      if (logits[t] >= min) expected.push_back(static_cast<TokenId>(t));
    }
    ASSERT_EQ(found, expected);
  }
}

TEST(ExpSum, IsWithinItsErrorOfTheSumOfExponentials) {
  std::mt19937_64 engine(3);
  for (const double temperature : {1e-6, 0.1, 1.0, 7.0, 1e6}) {
    for (const size_t count : {1, 2, 3, 4, 5, 1000, 4099}) {
      std::vector<float> logits(count);
      std::normal_distribution<float> normal(-3, 5);
      for (float& logit : logits) logit = normal(engine);
      const double largest = *std::max_element(logits.begin(), logits.end());
      if (count > 10) logits[5] = kNan, logits[6] = -kInf, logits[7] = -3e38F;
      double expected = 0;
      for (const float logit : logits) {
        if (!std::isnan(logit)) expected += std::exp((logit - largest) / temperature);
      }
      EXPECT_NEAR(exp_sum(logits, largest, temperature) / expected, 1.0, 1e-9)
          << count << " at " << temperature;
    }
  }
}

}  // namespace
}  // namespace outrider::logit_scan_test
