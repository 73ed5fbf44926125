// SPDX-License-Identifier: Apache-2.0
// The block types of GGUF read as codes in groups: x = scale * number of the code - min. The file
// weight_codes.h has the bits of a code, the number it stands for, and the size of groups.
#pragma once

#include <cstdint>

#include "kernels/blocks/quant_blocks.h"

namespace outrider {

struct BlockCodes {
  int8_t* codes;  // one per number of the block
  float* scales;  // one per group
  float* mins;    // one per group; types without mins do not write them
};

void read_block(const BlockQ8_0& block, const BlockCodes& out);
void read_block(const BlockQ4_0& block, const BlockCodes& out);
void read_block(const BlockQ4_1& block, const BlockCodes& out);
void read_block(const BlockQ5_0& block, const BlockCodes& out);
void read_block(const BlockQ5_1& block, const BlockCodes& out);
void read_block(const BlockIQ4_NL& block, const BlockCodes& out);
void read_block(const BlockMXFP4& block, const BlockCodes& out);
void read_block(const BlockNVFP4& block, const BlockCodes& out);
void read_block(const BlockNVFP4F& block, const BlockCodes& out);
void read_block(const BlockQ2_K& block, const BlockCodes& out);
void read_block(const BlockQ3_K& block, const BlockCodes& out);
void read_block(const BlockQ4_K& block, const BlockCodes& out);
void read_block(const BlockQ5_K& block, const BlockCodes& out);
void read_block(const BlockQ6_K& block, const BlockCodes& out);
void read_block(const BlockIQ4_XS& block, const BlockCodes& out);
void read_block(const BlockTQ1_0& block, const BlockCodes& out);
void read_block(const BlockTQ2_0& block, const BlockCodes& out);
void read_block(const BlockIQ1_S& block, const BlockCodes& out);
void read_block(const BlockIQ1_M& block, const BlockCodes& out);
void read_block(const BlockIQ2_XXS& block, const BlockCodes& out);
void read_block(const BlockIQ2_XS& block, const BlockCodes& out);
void read_block(const BlockIQ2_S& block, const BlockCodes& out);
void read_block(const BlockIQ3_XXS& block, const BlockCodes& out);
void read_block(const BlockIQ3_S& block, const BlockCodes& out);

}  // namespace outrider
