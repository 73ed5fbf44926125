// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/blocks/quant_blocks.h"

namespace outrider {

// The block that comes closest to x[0, 256) in squared error among many candidate scales; a function of only
// these numbers. A number that is not finite makes the whole block NaN.
void quantize_block(const float* x, BlockQ4_K& block);
void quantize_block(const float* x, BlockQ6_K& block);

}  // namespace outrider
