// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/engine_parts.h"

namespace outrider {

// See Engine::score().
Result<std::vector<double>> score(EngineParts& parts, std::span<const TokenId> tokens);

}  // namespace outrider
