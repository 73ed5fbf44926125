// SPDX-License-Identifier: Apache-2.0
#include "kernels/shared_work.h"

namespace outrider {

int64_t input_items(InputLayout layout, int64_t rows, int64_t k) {
  switch (layout) {
    case InputLayout::kF32:
      return 0;
    case InputLayout::kInt8Groups:
      return rows * units_of(k, kInputGroup);
    case InputLayout::kInt8Rows:
      return rows;
    case InputLayout::kBF16Pairs:
      return units_of(rows, kPairRows) * units_of(k, kCodeBlock);
    case InputLayout::kBF16Tiles:
      return units_of(rows, 16) * units_of(k, kCodeBlock);
    case InputLayout::kF32Tiles:
      return rows <= kUntiledRows ? 0 : units_of(rows, kFloatRows) * units_of(k, kCodeBlock);
  }
  return 0;
}

}  // namespace outrider
