// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/prompt_set.h"
#include "config/settings.h"
#include "outrider/engine.h"

namespace outrider {

// A way of choosing tokens, greedy or sampled.
struct Mode {
  std::string name;
  SamplingParams sampling;
};

// Greedy, and also sampled if the acceptance rule guarantees the same text and not only the same
// distribution.
std::vector<Mode> modes_for(const Settings& settings);

// A request for each prompt.
std::vector<Request> requests_for(const Settings& settings, const PreparedPrompts& prepared,
                                  const SamplingParams& sampling);

}  // namespace outrider
