// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "engine/engine_parts.h"

namespace outrider {

// Limits of the time for calibration: to the end, and short enough for nobody to notice.
inline constexpr double kNoLimitMs = std::numeric_limits<double>::infinity();
inline constexpr double kQuickMs = 100.0;

// Times passes of the opened target over a few row counts, with and without context. All of them take some
// seconds with a large model and a few milliseconds with a small one. When limit_ms have passed it stops, but
// not before it has two row counts, which take five passes. If options.cache_dir is set, the result is kept
// there under a fingerprint of the model, the machine and the number of threads; the next calibration adds
// what is missing. A file that cannot be read or written is no error.
PassCosts calibrate(EngineParts& parts, double limit_ms);

}  // namespace outrider
