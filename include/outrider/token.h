// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// Index into a model's vocabulary; valid ids are >= 0.
using TokenId = int32_t;

}  // namespace outrider
