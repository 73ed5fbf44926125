// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/model.h"

namespace outrider {

// Qwen3 (dense): every head of queries and keys is normalised; head_dim is independent of hidden_size.
Result<std::unique_ptr<Model>> load_qwen3(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
