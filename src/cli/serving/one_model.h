// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"
#include "server/server.h"

namespace outrider {

// Sets the parts of a server about the one model that it has.
Status add_model(const Settings& settings, ServerParts& parts);

}  // namespace outrider
