// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// `bench --prompt-lengths`: the time to the first token of random prompts, which no cache knows. Every round
// measures all lengths.
Status run_prompt_bench(const Settings& settings);

}  // namespace outrider
