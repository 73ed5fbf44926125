// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "server/fleet/fleet_options.h"

namespace outrider {

struct Settings;

// The models of `serve --models` and how their engines are started: as `outrider serve MODEL` with the
// options that were given. Errors: the models cannot be found; an option that several models cannot have.
Result<FleetOptions> fleet_options(const Settings& settings);

}  // namespace outrider
