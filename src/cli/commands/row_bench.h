// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// `bench --rows`: how long one pass of the target takes by its number of rows. Up to 65 rows are the chain of
// a drafted tree; more are a prompt chunk. Logits of all rows are computed. Rounds go over the row counts in
// turn, and each also times a plain read of as many bytes as the weights hold.
Status run_row_bench(const Settings& settings);

}  // namespace outrider
