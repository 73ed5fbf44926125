// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/blocks/quant_blocks.h"

namespace outrider {

// The block made of x[0, 32), a function of only these numbers. All types are rounded as GGUF's reference
// quantiser does, except IQ4_NL, where the scale is searched for.
void quantize_block(const float* x, BlockQ8_0& block);
void quantize_block(const float* x, BlockQ4_0& block);
void quantize_block(const float* x, BlockQ4_1& block);
void quantize_block(const float* x, BlockQ5_0& block);
void quantize_block(const float* x, BlockQ5_1& block);
void quantize_block(const float* x, BlockIQ4_NL& block);
void quantize_block(const float* x, BlockMXFP4& block);

}  // namespace outrider
