// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "open/model_names.h"

namespace outrider {

// Fetches a model that a command names and this machine does not have, where --pull says so or a terminal
// answers yes. Where none is named, a terminal chooses from a list, and --pull takes the usual one.
FirstUse first_use_of(const PullOptions& options);

}  // namespace outrider
