// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/sampling_params.h"

namespace outrider {

// Probability that the coupled rule accepts one draft: that arg max(log p + g) and arg max(log q' + g) are
// the same token, where g is the noise both share and q' is `q` at that many times its temperature (> 0). Sum
// over tokens i of 1 / sum over tokens j of max(p_j / p_i, q'_j / q'_i).
double coupled_agreement(const Distribution& p, const Distribution& q, double temperature = 1.0);

}  // namespace outrider
