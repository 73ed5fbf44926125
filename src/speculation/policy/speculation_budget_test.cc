// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

using Account = SpeculationBudget::Account;

// Every sequence drafts while its account lets it, and loses a token each time.
TEST(SpeculationBudget, ADrafterThatNeverHelpsLosesThePurseOnce) {
  SpeculationBudget accounts;
  double lost = 0.0;
  for (int sequence = 0; sequence < 1000; ++sequence) {
    Account account = accounts.open();
    for (int step = 0; step < 20; ++step) {
      accounts.begin(1.0, account.balance);
      if (!accounts.pays(account, false)) continue;
      accounts.settle(account, -1.0, 1.0);
      lost += 1.0;
    }
    accounts.close(account);
  }
  // What plain steps earned meanwhile was ventured, too.
  EXPECT_LE(lost, SpeculationBudget::kMaxReserve + 1000 * 20 * SpeculationBudget::kPromisedIncome);
  EXPECT_GE(lost, SpeculationBudget::kMaxReserve);
}

TEST(SpeculationBudget, TriesArePaidFromPlainSteps) {
  SpeculationBudget accounts;
  Account account = accounts.open();
  int tries = 0, steps = 0;
  for (; steps < 10000; ++steps) {
    accounts.begin(1.0, account.balance);
    if (!accounts.pays(account, true)) continue;
    accounts.settle(account, -1.0, 1.0);
    ++tries;
  }
  EXPECT_NEAR(tries, steps * SpeculationBudget::kIncome, 2.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kFirstBalance) << "a try is not the sequence's own";
}

TEST(SpeculationBudget, ABatchWaitsForAsManyTokensAsItHasSequences) {
  SpeculationBudget accounts;
  std::vector<Account> batch(8);
  int step = 0;
  for (bool is_paid = false; !is_paid; ++step) {
    accounts.begin(8.0, 0.0);
    for (Account& account : batch) is_paid |= accounts.pays(account, true);
  }
  EXPECT_NEAR(step, 1 / SpeculationBudget::kIncome, 2);
}

// Sequences of a batch stand in for one another.
TEST(SpeculationBudget, ADebtIsCoveredByTheOthers) {
  SpeculationBudget accounts;
  while (accounts.reserve() > 0.0) accounts.open();
  Account debtor{.balance = -1.0};
  accounts.begin(2.0, 0.5);
  EXPECT_TRUE(accounts.pays(debtor, false));
  accounts.begin(2.0, -0.5);
  EXPECT_FALSE(accounts.pays(debtor, false));
  EXPECT_DOUBLE_EQ(debtor.balance, -1.0 + SpeculationBudget::kPromisedIncome);
}

// Chance takes all from one sequence where drafting pays on the whole.
TEST(SpeculationBudget, WhoIsInDebtBeginsAgainAsLongAsThePurseLasts) {
  SpeculationBudget accounts;
  double lost = 0.0;
  Account account;
  accounts.begin(1.0, account.balance);
  while (accounts.pays(account, false)) {
    accounts.settle(account, -0.75, 1.0);
    lost += 0.75;
    ASSERT_LT(lost, 2.0 * SpeculationBudget::kMaxReserve);
    accounts.begin(1.0, account.balance);
  }
  EXPECT_DOUBLE_EQ(accounts.reserve(), 0.0);
  EXPECT_NEAR(lost, SpeculationBudget::kMaxReserve, SpeculationBudget::kMaxLost);
}

TEST(SpeculationBudget, WhatIsWonBeyondItsMostGoesToThePurse) {
  SpeculationBudget accounts;
  Account account = accounts.open();
  const double reserve = accounts.reserve();
  accounts.begin(1.0, 1.0);
  ASSERT_TRUE(accounts.pays(account, false));
  accounts.settle(account, SpeculationBudget::kLargestBalance - account.balance + 1.0, 1.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kLargestBalance);
  EXPECT_DOUBLE_EQ(accounts.reserve(), reserve + 1.0);
}

TEST(SpeculationBudget, BalancesAreBounded) {
  SpeculationBudget accounts;
  Account account = accounts.open();
  accounts.begin(1.0, 1.0);
  ASSERT_TRUE(accounts.pays(account, false));
  accounts.settle(account, 1000.0, 1.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kLargestBalance);
  accounts.settle(account, -1000.0, 1.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kLargestBalance - SpeculationBudget::kMaxLost);
}

TEST(SpeculationBudget, WhatHadToBeReadIsPaidInFull) {
  SpeculationBudget accounts;
  Account account = accounts.open();
  accounts.begin(1.0, 1.0);
  ASSERT_TRUE(accounts.pays(account, false));
  accounts.settle(account, -9.0, 1.0, 8.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kFirstBalance - 9.0);
  accounts.settle(account, -1000.0, 1.0, 8.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kFirstBalance - 9.0 - SpeculationBudget::kMaxLost - 8.0);
}

TEST(SpeculationBudget, WhoEndsLeavesToWhoBegins) {
  SpeculationBudget accounts;
  const double reserve = accounts.reserve();
  Account first = accounts.open();
  EXPECT_EQ(first.balance, SpeculationBudget::kFirstBalance);
  EXPECT_EQ(accounts.reserve(), reserve - first.balance);
  first.balance = -reserve;
  accounts.close(first);
  EXPECT_LT(accounts.open().balance, 0.0) << "debts are left, too";
}

}  // namespace
}  // namespace outrider
