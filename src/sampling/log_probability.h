// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "outrider/engine.h"

namespace outrider {

// Natural log-probabilities of the softmax of one row of logits; within 1e-8. NaN counts as -infinity; logits
// of +infinity share all mass.
class LogSoftmax {
 public:
  // Only the first `tokens` logits belong to tokens; the others have a share of the mass, but are never
  // listed. The row must outlive this.
  explicit LogSoftmax(std::span<const float> logits, size_t tokens = std::dynamic_extent);

  double of(TokenId token) const;
  // Rank of the token, 1 for the likeliest; ties go to the lower id.
  int64_t rank(TokenId token) const;
  // The log-probabilities of `token` and of the `top` likeliest tokens; fewer if fewer have a probability
  // above 0.
  TokenLogprobs list(TokenId token, int top) const;

 private:
  std::span<const float> logits_;  // [tokens]
  bool is_infinite_ = false;       // some logits are +infinity
  double total_ = 0.0;             // log of the sum of exp(logit), or of the number of infinite logits
};

}  // namespace outrider
