// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_parts.h"

namespace outrider {

// Times passes of the opened target over a few row counts, without and with context. Takes about a second of
// a large model and a few milliseconds of a small one. The result is kept in options.cache_dir, if that is
// set, under the model, the machine and the number of threads, and found there the next time; a file that
// cannot be read or written is no error.
PassCosts calibrate(EngineParts& parts);

}  // namespace outrider
