// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_parts.h"

namespace outrider {

// Times passes of the opened target over a few row counts, with and without context. This takes about a
// second with a large model and a few milliseconds with a small one. If options.cache_dir is set, the result
// is kept there under a fingerprint of the model, the machine and the number of threads, and is used again
// unless it lacks row counts that are now needed. A file that cannot be read or written is no error.
PassCosts calibrate(EngineParts& parts);

}  // namespace outrider
