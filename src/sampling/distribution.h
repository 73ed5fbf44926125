// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/sampling_params.h"

namespace outrider {

// Whether `distribution` is valid: ids strictly ascending and >= 0, one finite probability >= 0 per id, and a
// sum within 1e-6 of 1. Distributions that come from a drafter are checked before use.
bool is_proper(const Distribution& distribution);

// The token's probability, 0 if the distribution does not hold it. Precondition: ids ascending.
double probability(const Distribution& distribution, TokenId token);

}  // namespace outrider
