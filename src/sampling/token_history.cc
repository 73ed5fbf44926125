// SPDX-License-Identifier: Apache-2.0
#include "sampling/token_history.h"

#include "base/check.h"

namespace outrider {

void TokenHistory::add_prompt(std::span<const TokenId> prompt) {
  for (const TokenId token : prompt) ++counts_[token].prompt;
}

void TokenHistory::push(TokenId output) {
  ++counts_[output].output;
  output_.push_back(output);
}

void TokenHistory::pop() {
  OUTRIDER_CHECK(!output_.empty());
  --counts_[output_.back()].output;
  output_.pop_back();
}

}  // namespace outrider
