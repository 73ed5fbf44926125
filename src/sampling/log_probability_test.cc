// SPDX-License-Identifier: Apache-2.0
#include "sampling/log_probability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace outrider {
namespace {

using testing::IsEmpty;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LogSoftmax, EqualsTheObviousSum) {
  std::mt19937_64 random(3);
  for (const size_t size : {1, 5, 63, 64, 65, 1000, 5001}) {
    std::normal_distribution<float> normal(random() % 40, 1 + static_cast<float>(random() % 8));
    std::vector<float> logits(size);
    for (float& logit : logits) logit = normal(random);
    if (size > 5) logits[5] = -kInf;
    if (size > 63) logits[63] = kNan;
    long double sum = 0;
    for (const float logit : logits) sum += std::isnan(logit) ? 0 : std::exp(static_cast<long double>(logit));
    const LogSoftmax distribution(logits);
    for (size_t i = 0; i < size; ++i) {
      if (!(logits[i] > -kInf)) {
        EXPECT_EQ(distribution.of(static_cast<TokenId>(i)), -kInf);
        continue;
      }
      const auto expected = static_cast<double>(logits[i] - std::log(sum));
      ASSERT_NEAR(distribution.of(static_cast<TokenId>(i)), expected, 1e-8) << size << ", token " << i;
    }
  }
}

TEST(LogSoftmax, ListsTheLikeliestWithTiesById) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(1 + random() % 300);
    for (float& logit : logits) logit = static_cast<float>(random() % 12);
    const auto token = static_cast<TokenId>(random() % logits.size());
    const LogSoftmax distribution(logits);
    for (const int top : {0, 1, 5, 20}) {
      std::vector<TokenId> order(logits.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
        return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
      });
      EXPECT_EQ(distribution.rank(token), std::find(order.begin(), order.end(), token) - order.begin() + 1);
      order.resize(std::min(order.size(), static_cast<size_t>(top)));
      const TokenLogprobs list = distribution.list(token, top);
      EXPECT_EQ(list.logprob, static_cast<float>(distribution.of(token)));
      ASSERT_EQ(list.top.size(), order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(list.top[i].first, order[i]);
        EXPECT_EQ(list.top[i].second, static_cast<float>(distribution.of(order[i])));
      }
    }
  }
}

TEST(LogSoftmax, LogitsWithoutATokenHaveMassButNoRank) {
  const std::vector<float> logits = {1, 2, 3, 9, 5};
  const LogSoftmax distribution(logits, 3);
  EXPECT_EQ(distribution.of(1), LogSoftmax(logits).of(1));
  EXPECT_EQ(distribution.rank(2), 1);
  const TokenLogprobs list = distribution.list(0, 4);
  ASSERT_EQ(list.top.size(), 3U);
  EXPECT_EQ(list.top.front().first, 2);
}

TEST(LogSoftmax, InfiniteAndAbsentLogitsAreDefined) {
  const std::vector<float> infinite = {1, kInf, kInf, kNan};
  const LogSoftmax shared(infinite);
  EXPECT_DOUBLE_EQ(shared.of(1), std::log(0.5));
  EXPECT_EQ(shared.of(0), -kInf);
  EXPECT_EQ(shared.of(3), -kInf);
  const std::vector<float> nothing = {-kInf, kNan};
  EXPECT_EQ(LogSoftmax(nothing).of(0), -kInf);
  EXPECT_THAT(LogSoftmax(nothing).list(1, 3).top, IsEmpty());
}

}  // namespace
}  // namespace outrider
