// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// `generate --server`: drafts here, and a server decodes.
Status run_remote_generate(const Settings& settings);

}  // namespace outrider
