// SPDX-License-Identifier: Apache-2.0
// Published drafters, so that `pull` can offer one and heads that name no target are found. The rows come
// from the Hub: tools/refresh_known_heads.py writes known_head_rows.h.
#pragma once

#include <string_view>
#include <vector>

#include "open/drafters/known_head.h"

namespace outrider {

// The published drafters of a model, by its normal name (normal_name.h).
std::vector<KnownHead> known_heads_for(std::string_view normal_target);

// The model that a known drafter was trained for; empty: an unknown repository. A quant or a file after ':'
// does not count.
std::string_view known_target_of(std::string_view repository);

}  // namespace outrider
