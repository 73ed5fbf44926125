// SPDX-License-Identifier: Apache-2.0
#include "speculation/draft_accounts.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

using Account = DraftAccounts::Account;

// Every sequence drafts while its account lets it, and loses a token each time.
TEST(DraftAccounts, ADrafterThatNeverHelpsLosesThePurseOnce) {
  DraftAccounts accounts;
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
  EXPECT_LE(lost, DraftAccounts::kLargestPurse + 1000 * 20 * DraftAccounts::kPromisedIncome);
  EXPECT_GE(lost, DraftAccounts::kLargestPurse);
}

TEST(DraftAccounts, TriesArePaidFromPlainSteps) {
  DraftAccounts accounts;
  Account account = accounts.open();
  int tries = 0, steps = 0;
  for (; steps < 10000; ++steps) {
    accounts.begin(1.0, account.balance);
    if (!accounts.pays(account, true)) continue;
    accounts.settle(account, -1.0, 1.0);
    ++tries;
  }
  EXPECT_NEAR(tries, steps * DraftAccounts::kIncome, 2.0);
  EXPECT_EQ(account.balance, DraftAccounts::kFirstBalance) << "a try is not the sequence's own";
}

TEST(DraftAccounts, ABatchWaitsForAsManyTokensAsItHasSequences) {
  DraftAccounts accounts;
  std::vector<Account> batch(8);
  int step = 0;
  for (bool is_paid = false; !is_paid; ++step) {
    accounts.begin(8.0, 0.0);
    for (Account& account : batch) is_paid |= accounts.pays(account, true);
  }
  EXPECT_NEAR(step, 1 / DraftAccounts::kIncome, 2);
}

// Sequences of a batch stand in for one another.
TEST(DraftAccounts, ADebtIsCoveredByTheOthers) {
  DraftAccounts accounts;
  while (accounts.purse() > 0.0) accounts.open();
  Account debtor{.balance = -1.0};
  accounts.begin(2.0, 0.5);
  EXPECT_TRUE(accounts.pays(debtor, false));
  accounts.begin(2.0, -0.5);
  EXPECT_FALSE(accounts.pays(debtor, false));
  EXPECT_DOUBLE_EQ(debtor.balance, -1.0 + DraftAccounts::kPromisedIncome);
}

// Chance takes all from one sequence where drafting pays on the whole.
TEST(DraftAccounts, WhoIsInDebtBeginsAgainAsLongAsThePurseLasts) {
  DraftAccounts accounts;
  double lost = 0.0;
  Account account;
  accounts.begin(1.0, account.balance);
  while (accounts.pays(account, false)) {
    accounts.settle(account, -0.75, 1.0);
    lost += 0.75;
    ASSERT_LT(lost, 2.0 * DraftAccounts::kLargestPurse);
    accounts.begin(1.0, account.balance);
  }
  EXPECT_DOUBLE_EQ(accounts.purse(), 0.0);
  EXPECT_NEAR(lost, DraftAccounts::kLargestPurse, DraftAccounts::kMostLost);
}

TEST(DraftAccounts, WhatIsWonBeyondItsMostGoesToThePurse) {
  DraftAccounts accounts;
  Account account = accounts.open();
  const double purse = accounts.purse();
  accounts.begin(1.0, 1.0);
  ASSERT_TRUE(accounts.pays(account, false));
  accounts.settle(account, DraftAccounts::kLargestBalance - account.balance + 1.0, 1.0);
  EXPECT_EQ(account.balance, DraftAccounts::kLargestBalance);
  EXPECT_DOUBLE_EQ(accounts.purse(), purse + 1.0);
}

TEST(DraftAccounts, BalancesAreBounded) {
  DraftAccounts accounts;
  Account account = accounts.open();
  accounts.begin(1.0, 1.0);
  ASSERT_TRUE(accounts.pays(account, false));
  accounts.settle(account, 1000.0, 1.0);
  EXPECT_EQ(account.balance, DraftAccounts::kLargestBalance);
  accounts.settle(account, -1000.0, 1.0);
  EXPECT_EQ(account.balance, DraftAccounts::kLargestBalance - DraftAccounts::kMostLost);
}

TEST(DraftAccounts, WhatHadToBeReadIsPaidInFull) {
  DraftAccounts accounts;
  Account account = accounts.open();
  accounts.begin(1.0, 1.0);
  ASSERT_TRUE(accounts.pays(account, false));
  accounts.settle(account, -9.0, 1.0, 8.0);
  EXPECT_EQ(account.balance, DraftAccounts::kFirstBalance - 9.0);
  accounts.settle(account, -1000.0, 1.0, 8.0);
  EXPECT_EQ(account.balance, DraftAccounts::kFirstBalance - 9.0 - DraftAccounts::kMostLost - 8.0);
}

TEST(DraftAccounts, WhoEndsLeavesToWhoBegins) {
  DraftAccounts accounts;
  const double purse = accounts.purse();
  Account first = accounts.open();
  EXPECT_EQ(first.balance, DraftAccounts::kFirstBalance);
  EXPECT_EQ(accounts.purse(), purse - first.balance);
  first.balance = -purse;
  accounts.close(first);
  EXPECT_LT(accounts.open().balance, 0.0) << "debts are left, too";
}

}  // namespace
}  // namespace outrider
