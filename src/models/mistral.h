// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/model.h"

namespace outrider {

// Mistral: never has biases; early versions have a sliding window.
Result<std::unique_ptr<Model>> load_mistral(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
