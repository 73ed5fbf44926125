// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// How often each token stands in the prompt and in the output: what penalties depend on. Drafted tokens are
// pushed while a path is examined and popped afterwards; only committed ones stay.
class TokenHistory {
 public:
  void add_prompt(std::span<const TokenId> prompt);
  void push(TokenId output);
  void pop();  // undoes the last push

  struct Counts {
    int32_t prompt = 0;
    int32_t output = 0;
  };
  const std::unordered_map<TokenId, Counts>& counts() const { return counts_; }

 private:
  std::unordered_map<TokenId, Counts> counts_;  // an entry may be all zero after pop()
  std::vector<TokenId> output_;
};

}  // namespace outrider
