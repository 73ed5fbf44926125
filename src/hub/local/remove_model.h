// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "hub/local/local_model.h"
#include "outrider/result.h"

namespace outrider {

// Removes a model that lies below `root`: a folder whole, or a GGUF file with its other shards; then the
// folders of it that hold nothing more. Returns the bytes of the weights. Errors: the model lies elsewhere; a
// file cannot be removed.
Result<int64_t> remove_local_model(const LocalModel& model, const std::filesystem::path& root);

}  // namespace outrider
