// SPDX-License-Identifier: Apache-2.0
// How kernels that treat every number by itself divide rows: a warp takes 32 numbers of a row.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

struct RowPart {
  int row;   // that this warp works on, -1 if there is none
  Ints i;    // its numbers, one for each lane
  Bools in;  // which of them the row has
};

// The warp among all warps of the launch.
SIMT int item_of(const Block& block) { return block.index() * block.warps() + block.warp(); }

// The part of a warp in `rows` rows of `dim` numbers.
SIMT RowPart row_part_of(const Block& block, int rows, int dim) {
  const int parts = (dim + kWarp - 1) / kWarp;
  const int item = item_of(block);
  const Ints i = lane_id() + Ints(item % parts * kWarp);
  return {item < rows * parts ? item / parts : -1, i, i < Ints(dim)};
}

}  // namespace outrider::simt
