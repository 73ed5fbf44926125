// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "outrider/engine.h"
#include "tensor/dtype.h"

namespace outrider {

// The type that stored matrices are converted to; nullopt: none.
std::optional<DType> storage_type(WeightPrecision precision);
// The type of cached keys and values.
DType storage_type(KvCacheType type);

}  // namespace outrider
