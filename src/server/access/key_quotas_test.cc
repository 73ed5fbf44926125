// SPDX-License-Identifier: Apache-2.0
#include "server/access/key_quotas.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

constexpr double kSecond = 1000;

TEST(KeyQuotas, WithoutLimitsEverythingIsTaken) {
  KeyQuotas quotas({});
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(quotas.refuse(1, 0));
}

TEST(KeyQuotas, RequestsComeBackEvenly) {
  KeyQuotas quotas({.requests = 6});
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(quotas.refuse(1, 0)) << i;
  EXPECT_EQ(quotas.refuse(1, 0), 10.0) << "seconds";
  EXPECT_FALSE(quotas.refuse(2, 0)) << "another key";
  EXPECT_NEAR(*quotas.refuse(1, 4 * kSecond), 6.0, 1e-9);
  EXPECT_FALSE(quotas.refuse(1, 10.001 * kSecond));
  EXPECT_TRUE(quotas.refuse(1, 10.002 * kSecond));
  for (int i = 0; i < 6; ++i)
    EXPECT_FALSE(quotas.refuse(1, 1e6 * kSecond)) << "never more than a minute's worth";
  EXPECT_TRUE(quotas.refuse(1, 1e6 * kSecond));
}

TEST(KeyQuotas, TokensMayLeaveADebt) {
  KeyQuotas quotas({.tokens = 600});
  EXPECT_FALSE(quotas.refuse(1, 0));
  quotas.take_tokens(1, 599, 0);
  EXPECT_FALSE(quotas.refuse(1, 0)) << "one is left";
  quotas.take_tokens(1, 601, 0);
  EXPECT_NEAR(*quotas.refuse(1, 0), 60.1, 1e-9) << "600 too many, and one for the next";
  EXPECT_TRUE(quotas.refuse(1, 60 * kSecond));
  EXPECT_FALSE(quotas.refuse(1, 60.2 * kSecond));
}

TEST(KeyQuotas, ARefusedRequestCostsNothing) {
  KeyQuotas quotas({.requests = 1, .tokens = 10});
  quotas.take_tokens(1, 70, 0);
  EXPECT_TRUE(quotas.refuse(1, 0));
  EXPECT_FALSE(quotas.refuse(1, 400 * kSecond));
}

}  // namespace
}  // namespace outrider
