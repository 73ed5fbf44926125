// SPDX-License-Identifier: Apache-2.0
// Block types as codes in groups: x = scale * code - min. Every packing of block types starts from these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace outrider {

struct CodeType {
  int bits = 8;          // 4: codes are 0 to 15; 8: signed
  int group = 32;        // numbers that share a scale
  bool has_min = false;  // without min, the code of zero is kNibbleZero for 4 bits and 0 for 8 bits
};

// Precondition: a block type.
constexpr CodeType code_type(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return {.bits = 4};
    case DType::kQ4_K:
      return {.bits = 4, .has_min = true};
    case DType::kQ5_K:
      return {.has_min = true};
    case DType::kQ6_K:
      return {.group = 16};
    default:
      return {};
  }
}

constexpr int kCodesPerStretch = 256;  // a multiple of every block

// Up to kCodesPerStretch numbers of one row; groups beyond the row have scale 0.
struct WeightCodes {
  int8_t codes[kCodesPerStretch];
  // Half-precision bits of scale / unit and min / unit, one per group.
  uint16_t scales[kCodesPerStretch / 16];
  uint16_t mins[kCodesPerStretch / 16];
};

// A power of two that keeps scale / unit and min / unit of a row within half precision and away from its
// subnormal numbers; 1 for types whose scales are stored in half precision.
float scale_unit(DType dtype, const std::byte* row, int64_t elements);

// Numbers [begin, begin + kCodesPerStretch) of a row of `elements`; begin is a multiple of kCodesPerStretch.
void read_codes(DType dtype, const std::byte* row, int64_t begin, int64_t elements, float unit,
                WeightCodes& out);

}  // namespace outrider
