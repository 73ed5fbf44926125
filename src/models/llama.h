// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/model.h"

namespace outrider {

// Llama 2, 3, 3.1, 3.2 and what shares their form (SmolLM2): biases only where the config asks for them.
Result<std::unique_ptr<Model>> load_llama(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
