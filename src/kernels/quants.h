// SPDX-License-Identifier: Apache-2.0
// Rows of stored types, read and written by scalar code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace outrider {

// Converts `elements` stored numbers of one row to f32, as the format's description defines them.
void dequantize_row(DType dtype, const std::byte* row, float* out, int64_t elements);

// Whether quantize_row() writes the type.
bool can_quantize(DType dtype);

// Converts one f32 row; precondition: can_quantize(dtype). The scales of Q4_K, Q6_K and IQ4_NL are found by a
// search; all other types are rounded as GGUF's reference quantiser does.
void quantize_row(DType dtype, const float* row, std::byte* out, int64_t elements);

}  // namespace outrider
