// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// Finds the models that the settings name and puts their paths in place of the names: MODEL, IN, and the
// models of --speculative. A path that exists stays as it is. Where a command needs MODEL and none is given,
// it becomes SmolLM2 or, where that is not on this machine, the built-in target, and a warning of the
// settings says so. Errors: a name is unknown or ambiguous.
Status find_models(Settings& settings);

}  // namespace outrider
