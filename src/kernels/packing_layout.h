// SPDX-License-Identifier: Apache-2.0
// Shared by packing and unpacking.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/weight_codes.h"

namespace outrider {

// One row and its place in a panel; `index` counts the rows of the panel.
struct PanelRow {
  DType dtype;
  int64_t k;
  const std::byte* stored;
  std::byte* panel;
  int64_t index;
};

// Size of kCodeBlock inputs of 16 features: scales, then mins if any, then codes. Dot layouts order each by
// group and then by feature, tile layouts by feature and then by group. The last block of a panel in a dot
// layout ends with its last code.
inline int64_t code_block_bytes(const CodeType& type) {
  return 16 * (kCodeBlock / type.group * (type.has_min ? 4 : 2) + kCodeBlock * type.bits / 8);
}

}  // namespace outrider
