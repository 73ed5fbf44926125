// SPDX-License-Identifier: Apache-2.0
// Tensors in the safetensors format: u64 header size, JSON header, data.
#pragma once

#include <filesystem>

#include "outrider/result.h"
#include "training/core/named_tensors.h"

namespace outrider::training {

// Writes f32, bf16, f16, int64, int32, int8 or bool tensors, complete or not at all.
Status write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);

// Reads every tensor of these types into CPU memory.
Result<NamedTensors> read_safetensors(const std::filesystem::path& path);

}  // namespace outrider::training
