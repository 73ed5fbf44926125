// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/model.h"

namespace outrider {

// Qwen2 and Qwen2.5: queries, keys and values always have biases.
Result<std::unique_ptr<Model>> load_qwen2(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
