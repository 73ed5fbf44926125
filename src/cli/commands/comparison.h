// SPDX-License-Identifier: Apache-2.0
// The drafters that `bench drafters` compares.
#pragma once

#include <vector>

#include "cli/reports/comparison_data.h"
#include "open/drafters/drafter_search.h"
#include "outrider/result.h"

namespace outrider {

// Drafters without a model, the drafters in `found`, and mixtures, each in the shapes that it can draft.
Result<std::vector<Contender>> contenders(const std::vector<FoundDrafter>& found, NodeBudget budget);

}  // namespace outrider
