// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// Runs the model with every kernel table that promises the same bits (has_portable_bits()), and on the device
// that the options name. Texts and log-probabilities must be equal, and equal to themselves without drafts.
// Errors: something differs; there are no two to compare.
Status compare_kernels(const Settings& settings);

}  // namespace outrider
