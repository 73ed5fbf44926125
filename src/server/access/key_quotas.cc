// SPDX-License-Identifier: Apache-2.0
#include "server/access/key_quotas.h"

#include <algorithm>

namespace outrider {

KeyQuotas::Account& KeyQuotas::account(uint64_t scope, double now_ms) {
  const auto [found, is_new] =
      accounts_.try_emplace(scope, Account{limits_.requests, limits_.tokens, now_ms});
  Account& account = found->second;
  const double minutes = std::max(now_ms - account.counted_ms, 0.0) / 60e3;
  account.requests = std::min(account.requests + minutes * limits_.requests, limits_.requests);
  account.tokens = std::min(account.tokens + minutes * limits_.tokens, limits_.tokens);
  account.counted_ms = now_ms;
  return account;
}

std::optional<double> KeyQuotas::refuse(uint64_t scope, double now_ms) {
  if (!has_limits()) return std::nullopt;
  Account& own = account(scope, now_ms);
  double minutes = 0;
  if (limits_.requests > 0 && own.requests < 1) minutes = (1 - own.requests) / limits_.requests;
  if (limits_.tokens > 0 && own.tokens <= 0) minutes = std::max(minutes, (1 - own.tokens) / limits_.tokens);
  if (minutes > 0) return 60 * minutes;
  own.requests -= 1;
  return std::nullopt;
}

void KeyQuotas::take_tokens(uint64_t scope, int64_t tokens, double now_ms) {
  if (limits_.tokens > 0) account(scope, now_ms).tokens -= static_cast<double>(tokens);
}

}  // namespace outrider
