// SPDX-License-Identifier: Apache-2.0
#include "speculation/draft_accounts.h"

#include <algorithm>

namespace outrider {

DraftAccounts::Account DraftAccounts::open() {
  const Account account{.balance = std::clamp(purse_, -kMostLost, kFirstBalance)};
  purse_ -= account.balance;
  return account;
}

void DraftAccounts::close(const Account& account) {
  purse_ = std::min(purse_ + account.balance, kLargestPurse);
}

void DraftAccounts::begin(double may_draft, double pool) {
  may_try_ = try_balance_ >= kPriceOfTry * may_draft;
  pool_ = pool;
}

bool DraftAccounts::pays(Account& account, bool is_try) {
  account.is_try = is_try;
  if (!is_try && pool_ < 0.0 && purse_ > 0.0) {
    const double gift = std::min(purse_, kFirstBalance);
    purse_ -= gift;
    account.balance += gift;
    pool_ += gift;
  }
  if (is_try ? may_try_ : pool_ >= 0.0) return true;
  (is_try ? try_balance_ : account.balance) += is_try ? kIncome : kPromisedIncome;
  return false;
}

void DraftAccounts::settle(Account& account, double won, double drafting, double expected_loss) {
  if (account.is_try) {
    try_balance_ = std::min(try_balance_ + won, kLargestBalance * drafting);
    return;
  }
  account.balance += std::max(won, -kMostLost - expected_loss);
  const double surplus = std::max(0.0, account.balance - kLargestBalance);
  account.balance -= surplus;
  purse_ = std::min(purse_ + surplus, kLargestPurse);
}

}  // namespace outrider
