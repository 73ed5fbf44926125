// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace outrider {

// Bounds what each key takes in a minute. A key starts with a minute's worth and gets it back evenly. Tokens
// count when a call ends, so a key may be in debt for a while. Times are now_ms()'s.
class KeyQuotas {
 public:
  struct Limits {
    double requests = 0;  // in a minute; 0: any number
    double tokens = 0;    // of prompts and outputs
  };
  explicit KeyQuotas(const Limits& limits) : limits_(limits) {}

  bool has_limits() const { return limits_.requests > 0 || limits_.tokens > 0; }
  // Takes one request. Otherwise the seconds after which the key may try again.
  std::optional<double> refuse(uint64_t scope, double now_ms);
  void take_tokens(uint64_t scope, int64_t tokens, double now_ms);

 private:
  struct Account {
    double requests = 0, tokens = 0;  // that are left
    double counted_ms = 0;
  };
  Account& account(uint64_t scope, double now_ms);

  Limits limits_;
  std::unordered_map<uint64_t, Account> accounts_;  // keys are few: the server knows each
};

}  // namespace outrider
