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

// Stores the tokens with a logit >= `min` in `found`, ascending.
void tokens_from(std::span<const float> logits, float min, std::vector<TokenId>& found);

// Stores the k tokens with the largest logits above -infinity in `found`, in no order; ties go to the lowest
// ids. k >= 1.
void top_tokens(std::span<const float> logits, size_t k, std::vector<TokenId>& found);

// Sum of exp((logit - largest) / temperature), with a relative error of 1e-9 plus the rounding of the sum.
// Terms below e^-690 count as e^-690. Preconditions: no logit above `largest`; 1e-6 <= temperature <= 1e6.
double exp_sum(std::span<const float> logits, double largest, double temperature);

}  // namespace outrider
