// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

using Account = SpeculationBudget::Account;

// Every sequence drafts whenever its account allows it and loses one token each time.
TEST(SpeculationBudget, ADrafterThatNeverHelpsLosesTheReserveOnce) {
  SpeculationBudget budget;
  double lost = 0.0;
  for (int sequence = 0; sequence < 1000; ++sequence) {
    Account account = budget.open();
    for (int step = 0; step < 20; ++step) {
      budget.begin(1.0, account.balance);
      if (!budget.allows(account, false)) continue;
      budget.record(account, -1.0, 1.0);
      lost += 1.0;
    }
    budget.close(account);
  }
  // The income of the plain steps in between is lost as well.
  EXPECT_LE(lost, SpeculationBudget::kMaxReserve + 1000 * 20 * SpeculationBudget::kRecoveryIncome);
  EXPECT_GE(lost, SpeculationBudget::kMaxReserve);
}

TEST(SpeculationBudget, ATrialPaysForTheFirstExploration) {
  SpeculationBudget budget;
  Account account = budget.open(0.6);
  budget.begin(1.0, account.balance);
  EXPECT_TRUE(budget.allows(account, true));
  budget.record(account, 2.0, 1.0);  // a gain does not prolong the trial
  EXPECT_TRUE(budget.allows(account, true));
  budget.record(account, -0.4, 1.0);
  EXPECT_TRUE(budget.allows(account, true));
  budget.record(account, -0.4, 1.0);
  EXPECT_FALSE(budget.allows(account, true));
  EXPECT_TRUE(budget.allows(account, false));
  EXPECT_DOUBLE_EQ(account.balance, SpeculationBudget::kInitialBalance + 1.2);
}

TEST(SpeculationBudget, WithoutAReserveThereIsNoTrial) {
  SpeculationBudget budget;
  while (budget.reserve() > 0.0) budget.open();
  Account account = budget.open(0.6);
  budget.begin(1.0, account.balance);
  EXPECT_FALSE(budget.allows(account, true));
}

TEST(SpeculationBudget, PlainStepsPayForExploration) {
  SpeculationBudget budget;
  Account account = budget.open();
  int explorations = 0, steps = 0;
  for (; steps < 10000; ++steps) {
    budget.begin(1.0, account.balance);
    if (!budget.allows(account, true)) continue;
    budget.record(account, -1.0, 1.0);
    ++explorations;
  }
  EXPECT_NEAR(explorations, steps * SpeculationBudget::kExplorationIncome, 2.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kInitialBalance)
      << "exploration does not touch the account of the sequence";
}

TEST(SpeculationBudget, ExplorationCostsOneTokenPerSequence) {
  SpeculationBudget budget;
  std::vector<Account> batch(8);
  int step = 0;
  for (bool is_paid = false; !is_paid; ++step) {
    budget.begin(8.0, 0.0);
    for (Account& account : batch) is_paid |= budget.allows(account, true);
  }
  EXPECT_NEAR(step, 1 / SpeculationBudget::kExplorationIncome, 2);
}

// The sequences of a batch draft on their common balance.
TEST(SpeculationBudget, OtherBalancesCoverADebt) {
  SpeculationBudget budget;
  while (budget.reserve() > 0.0) budget.open();
  Account debtor{.balance = -1.0};
  budget.begin(2.0, 0.5);
  EXPECT_TRUE(budget.allows(debtor, false));
  budget.begin(2.0, -0.5);
  EXPECT_FALSE(budget.allows(debtor, false));
  EXPECT_DOUBLE_EQ(debtor.balance, -1.0 + SpeculationBudget::kRecoveryIncome);
}

// A sequence may lose its balance by chance although drafting pays on average.
TEST(SpeculationBudget, ASequenceInDebtBorrowsAsLongAsTheReserveLasts) {
  SpeculationBudget budget;
  double lost = 0.0;
  Account account;
  budget.begin(1.0, account.balance);
  while (budget.allows(account, false)) {
    budget.record(account, -0.75, 1.0);
    lost += 0.75;
    ASSERT_LT(lost, 2.0 * SpeculationBudget::kMaxReserve);
    budget.begin(1.0, account.balance);
  }
  EXPECT_DOUBLE_EQ(budget.reserve(), 0.0);
  EXPECT_NEAR(lost, SpeculationBudget::kMaxReserve, SpeculationBudget::kMaxLoss);
}

TEST(SpeculationBudget, GainsBeyondTheLargestBalanceGoToTheReserve) {
  SpeculationBudget budget;
  Account account = budget.open();
  const double reserve = budget.reserve();
  budget.begin(1.0, 1.0);
  ASSERT_TRUE(budget.allows(account, false));
  budget.record(account, SpeculationBudget::kMaxBalance - account.balance + 1.0, 1.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kMaxBalance);
  EXPECT_DOUBLE_EQ(budget.reserve(), reserve + 1.0);
}

TEST(SpeculationBudget, BalancesAreBounded) {
  SpeculationBudget budget;
  Account account = budget.open();
  budget.begin(1.0, 1.0);
  ASSERT_TRUE(budget.allows(account, false));
  budget.record(account, 1000.0, 1.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kMaxBalance);
  budget.record(account, -1000.0, 1.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kMaxBalance - SpeculationBudget::kMaxLoss);
}

// Reading is over when it is booked: a sequence with drafts that pay goes on, and the next ones have less.
TEST(SpeculationBudget, TheReservePaysForReading) {
  SpeculationBudget budget;
  Account account = budget.open();
  const double reserve = budget.reserve();
  budget.begin(1.0, account.balance);
  ASSERT_TRUE(budget.allows(account, false));
  budget.record(account, -9.0, 1.0, 8.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kInitialBalance - 1.0);
  EXPECT_EQ(budget.reserve(), reserve - 8.0);
  budget.record(account, -1000.0, 1.0, 20.0);
  EXPECT_EQ(account.balance, SpeculationBudget::kInitialBalance - 1.0 - SpeculationBudget::kMaxLoss);
  EXPECT_LT(budget.open().balance, 0.0);
}

TEST(SpeculationBudget, AClosedAccountReturnsItsBalanceToTheReserve) {
  SpeculationBudget budget;
  const double reserve = budget.reserve();
  Account first = budget.open();
  EXPECT_EQ(first.balance, SpeculationBudget::kInitialBalance);
  EXPECT_EQ(budget.reserve(), reserve - first.balance);
  first.balance = -reserve;
  budget.close(first);
  EXPECT_LT(budget.open().balance, 0.0) << "debts return to the reserve as well";
}

}  // namespace
}  // namespace outrider
