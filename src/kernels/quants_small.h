// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/blocks/quant_blocks.h"

namespace outrider {

// The block made of x[0, 32), a function of these numbers alone. All but IQ4_NL, whose scale is searched for,
// are rounded as GGUF's reference quantiser does.
void quantize_block(const float* x, BlockQ8_0& block);
void quantize_block(const float* x, BlockQ4_0& block);
void quantize_block(const float* x, BlockQ4_1& block);
void quantize_block(const float* x, BlockQ5_0& block);
void quantize_block(const float* x, BlockQ5_1& block);
void quantize_block(const float* x, BlockIQ4_NL& block);
void quantize_block(const float* x, BlockMXFP4& block);

}  // namespace outrider
