// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/sampling_params.h"

namespace outrider {

// The probability that the coupled rule accepts one drafted token: that arg max(log p + g) and arg max(log q'
// + g) are the same token. Here g is the Gumbel noise that both share, and q' is proportional to q^(1 /
// temperature), temperature > 0. Equals the sum over tokens i of 1 / sum over tokens j of max(p_j / p_i, q'_j
// / q'_i) (2408.07978).
double coupled_agreement(const Distribution& p, const Distribution& q, double temperature = 1.0);

}  // namespace outrider
