// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/sampling_params.h"

namespace outrider {

// True when `law` keeps the promise of Distribution: ids strictly ascending and >= 0, one finite probability
// >= 0 per id, their sum within 1e-6 of 1. Laws that come from a drafter are checked before they are used.
bool is_proper(const Distribution& law);

// 0 for a token the law does not hold. Precondition: ids ascending.
double probability(const Distribution& law, TokenId token);

}  // namespace outrider
