// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// `bench --batch`: prompts decoded so many at once, plainly and speculatively in turn; prints what came out.
Status run_batch_bench(const Settings& settings);

}  // namespace outrider
