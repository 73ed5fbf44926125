// SPDX-License-Identifier: Apache-2.0
#include "sampling/logit_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace outrider {
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

    const auto least = static_cast<float>(random() % 97) - 48;
    tokens_from(logits, least, found);
    expected.clear();
    for (size_t t = 0; t < logits.size(); ++t) {
      if (logits[t] >= least) expected.push_back(static_cast<TokenId>(t));
    }
    ASSERT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace outrider
