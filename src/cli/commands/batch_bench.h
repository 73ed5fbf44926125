// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// `bench --batch`: decodes several prompts at once, plainly and speculatively in turn, and prints the
// figures.
Status run_batch_bench(const Settings& settings);

}  // namespace outrider
