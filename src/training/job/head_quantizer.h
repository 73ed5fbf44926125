// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "outrider/result.h"
#include "training/core/named_tensors.h"

namespace outrider::training {

// A matrix [rows, columns] in few bits, as the tensors of compressed-tensors by their endings. In 8 bits they
// are "", int8 codes, and "_scale", f32 [rows, 1]. In 4 bits they are "_packed", int32 [rows, columns / 8]
// with eight codes from the lowest bits on, "_scale", f16 [rows, columns / 32], and "_shape", int64 [2].
NamedTensors in_8_bits(const at::Tensor& matrix);
NamedTensors in_4_bits(const at::Tensor& matrix);

// Writes the head of folder `from` (bf16) to folder `to` with its matrices in 8 or 4 bits. Vectors, small
// matrices, and for 4 bits matrices with rows that are not whole groups of 32, stay as they are. Returns the
// number of matrices that do not; where there are none, nothing is written.
Result<int64_t> quantize_head(const std::filesystem::path& from, const std::filesystem::path& to, int bits);

}  // namespace outrider::training
