// SPDX-License-Identifier: Apache-2.0
// State that drafters of several kinds keep from draft to draft.
#pragma once

#include <cstddef>

#include "outrider/drafter.h"
#include "sampling/token_history.h"

namespace outrider {

// The tokens of one sequence as penalties count them, for a drafter that sees only its requests.
class RequestHistory {
 public:
  void reserve(size_t tokens) { history_.reserve(tokens); }

  // Adds the tokens of the request that are not yet counted.
  TokenHistory& sync(const DraftRequest& request) {
    if (size_ == 0) {
      size_ = static_cast<size_t>(request.prompt_length);
      history_.add_prompt(request.tokens.first(size_));
    }
    for (; size_ < request.tokens.size(); ++size_) history_.push(request.tokens[size_]);
    return history_;
  }

 private:
  TokenHistory history_;
  size_t size_ = 0;  // tokens of the request in it
};

}  // namespace outrider
