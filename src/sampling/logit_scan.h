// SPDX-License-Identifier: Apache-2.0
// Passes over the logits of a whole vocabulary. NaN counts as -infinity.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "outrider/token.h"

namespace outrider {

struct LargestLogit {
  TokenId token = -1;  // lowest id among the largest; -1 when every logit is -infinity
  float value = 0;
};
LargestLogit largest_logit(std::span<const float> logits);

// Tokens with a logit >= `least`, ascending, into `found`.
void tokens_from(std::span<const float> logits, float min, std::vector<TokenId>& found);

// The k tokens with the largest logits above -infinity, in no order; of equal ones the lowest ids. k >= 1.
void top_tokens(std::span<const float> logits, size_t k, std::vector<TokenId>& found);

// Sum of exp((logit - largest) / temperature), no logit above `largest`: within 1e-9 of it and what sums
// round. Terms below e^-690 count as that. temperature: 1e-6 to 1e6.
double exp_sum(std::span<const float> logits, double largest, double temperature);

}  // namespace outrider
