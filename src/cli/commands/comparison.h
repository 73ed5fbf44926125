// SPDX-License-Identifier: Apache-2.0
// `bench --all`: measures all drafters on the same prompts.
#pragma once

#include <vector>

#include "cli/reports/comparison_data.h"
#include "config/settings.h"
#include "open/drafter_search.h"
#include "outrider/result.h"

namespace outrider {

// Drafters without a model, the drafters in `found`, and mixtures, each in the shapes that it can draft.
Result<std::vector<Contender>> contenders(const std::vector<FoundDrafter>& found, NodeBudget budget);

// Prints the results. The page (or JSON) of --output is written again after every round of a drafter, so it
// remains whatever ends the run. SIGINT and SIGTERM end the run with the results until then. Error: the run
// ended early, or an output differs.
Status run_comparison(const Settings& settings);

}  // namespace outrider
