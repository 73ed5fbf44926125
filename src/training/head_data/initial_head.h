// SPDX-License-Identifier: Apache-2.0
// The head that a run begins with.
#pragma once

#include <filesystem>

#include "outrider/result.h"
#include "training/core/named_tensors.h"

namespace outrider::training {

// The tensors of a written head: numbers as f32, whatever type they are stored in (shipped heads have 8
// bits), and integers as int64. Flags are left out.
Result<NamedTensors> read_initial_head(const std::filesystem::path& folder);

}  // namespace outrider::training
