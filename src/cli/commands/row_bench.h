// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// `bench --rows`: measures the time of a target pass for different numbers of rows. Up to 65 rows are a
// drafted tree, mostly a chain; more are a prompt chunk. Logits of all rows are computed. Every round
// measures all row counts, and a plain read of as many bytes as the weights have.
Status run_row_bench(const Settings& settings);

}  // namespace outrider
