// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/sampling_params.h"

namespace outrider {

// True when `distribution` keeps the promise of Distribution: ids strictly ascending and >= 0, one finite
// probability
// >= 0 per id, their sum within 1e-6 of 1. Distributions that come from a drafter are checked before they are
// used.
bool is_proper(const Distribution& distribution);

// 0 for a token the distribution does not hold. Precondition: ids ascending.
double probability(const Distribution& distribution, TokenId token);

}  // namespace outrider
