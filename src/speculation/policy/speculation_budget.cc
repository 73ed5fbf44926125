// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_budget.h"

#include <algorithm>

namespace outrider {

SpeculationBudget::Account SpeculationBudget::open() {
  const Account account{.balance = std::clamp(reserve_, -kMaxLost, kFirstBalance)};
  reserve_ -= account.balance;
  return account;
}

void SpeculationBudget::close(const Account& account) {
  reserve_ = std::min(reserve_ + account.balance, kMaxReserve);
}

void SpeculationBudget::begin(double may_draft, double pool) {
  may_try_ = try_balance_ >= kPriceOfTry * may_draft;
  pool_ = pool;
}

bool SpeculationBudget::pays(Account& account, bool is_try) {
  account.is_try = is_try;
  if (!is_try && pool_ < 0.0 && reserve_ > 0.0) {
    const double gift = std::min(reserve_, kFirstBalance);
    reserve_ -= gift;
    account.balance += gift;
    pool_ += gift;
  }
  if (is_try ? may_try_ : pool_ >= 0.0) return true;
  (is_try ? try_balance_ : account.balance) += is_try ? kIncome : kPromisedIncome;
  return false;
}

void SpeculationBudget::settle(Account& account, double won, double drafting, double expected_loss) {
  if (account.is_try) {
    try_balance_ = std::min(try_balance_ + won, kLargestBalance * drafting);
    return;
  }
  account.balance += std::max(won, -kMaxLost - expected_loss);
  const double surplus = std::max(0.0, account.balance - kLargestBalance);
  account.balance -= surplus;
  reserve_ = std::min(reserve_ + surplus, kMaxReserve);
}

}  // namespace outrider
