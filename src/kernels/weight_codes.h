// SPDX-License-Identifier: Apache-2.0
// Block types as codes in groups: x = scale * number of the code - min. Every packing of block types starts
// from such codes, and dequantize_row() reads them, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/nibble_values.h"
#include "tensor/dtype.h"

namespace outrider {

struct CodeType {
  int bits = 8;                                  // 4: codes are 0 to 15; 8: signed, and stand for themselves
  int group = 32;                                // numbers that share a scale
  bool has_min = false;                          // 4-bit codes with a min stand for themselves
  NibbleValues values = NibbleValues::kCentred;  // of 4-bit codes without a min
  // Bound of a group's scale and min in units of the block's half-precision scales, where they are products
  // that half precision rounds; 0 where they are half-precision numbers themselves.
  float products = 0;
};

// Precondition: a block type.
CodeType code_type(DType dtype);

constexpr int kCodesPerStretch = 256;  // a multiple of every block

// Up to kCodesPerStretch numbers of one row; groups beyond the row have scale 0.
struct WeightCodes {
  int8_t codes[kCodesPerStretch];
  float scales[kCodesPerStretch / 16];  // one per group
  float mins[kCodesPerStretch / 16];
};

// Numbers [begin, begin + kCodesPerStretch) of a row of `elements`; begin is a multiple of the type's block.
void read_codes(DType dtype, const std::byte* row, int64_t begin, int64_t elements, WeightCodes& out);

// A power of two that keeps scale / unit and min / unit of a row within half precision and away from its
// subnormal numbers; 1 for types with half-precision scales.
float scale_unit(DType dtype, const std::byte* row, int64_t elements);

}  // namespace outrider
