// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_budget.h"

#include <algorithm>

namespace outrider {

SpeculationBudget::Account SpeculationBudget::open(double trial) {
  const double balance = std::clamp(reserve_, -kMaxLoss, kInitialBalance);
  const Account account{.balance = balance, .trial = std::clamp(balance, 0.0, trial)};
  reserve_ -= account.balance;
  return account;
}

void SpeculationBudget::close(const Account& account) {
  reserve_ = std::min(reserve_ + account.balance, kMaxReserve);
}

void SpeculationBudget::begin(double candidates, double batch_balance) {
  may_explore_ = exploration_balance_ >= kExplorationPrice * candidates;
  batch_balance_ = batch_balance;
}

bool SpeculationBudget::allows(Account& account, bool is_exploration) {
  const bool is_trial = is_exploration && account.trial > 0.0;
  account.is_exploration = is_exploration && !is_trial;
  if (is_trial) return true;
  if (is_exploration) {
    if (!may_explore_) exploration_balance_ += kExplorationIncome;
    return may_explore_;
  }
  if (batch_balance_ < 0.0 && reserve_ > 0.0) {
    const double loan = std::min(reserve_, kInitialBalance);
    reserve_ -= loan;
    account.balance += loan;
    batch_balance_ += loan;
  }
  if (batch_balance_ < 0.0) account.balance += kRecoveryIncome;
  return batch_balance_ >= 0.0;
}

void SpeculationBudget::record(Account& account, double gain, double drafting, double reading) {
  if (account.is_exploration) {
    exploration_balance_ = std::min(exploration_balance_ + gain, kMaxBalance * drafting);
    return;
  }
  account.balance += std::max(gain + reading, -kMaxLoss);
  reserve_ -= reading;
  account.trial += std::min(gain, 0.0);
  const double surplus = std::max(0.0, account.balance - kMaxBalance);
  account.balance -= surplus;
  reserve_ = std::min(reserve_ + surplus, kMaxReserve);
}

}  // namespace outrider
