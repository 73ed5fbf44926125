// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// Neighbouring pairs of `dim` numbers become two halves, which is the order that rope() turns. Each row has
// `parts` of them.
struct SplitPairsArgs {
  Rows<const float> x;
  Rows<float> y;
  int rows;
  int parts;
  int dim;
  int x_row_stride, x_part_stride;
  int y_row_stride, y_part_stride;
};

// A warp takes a part of a row.
SIMT void split_pairs(const Block& block, const SplitPairsArgs& args) {
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.rows * args.parts) return;
  block.wait_for_previous();
  const int64_t row = item / args.parts, part = item % args.parts;
  const auto x = args.x.from(row * args.x_row_stride + part * args.x_part_stride);
  const auto y = args.y.from(row * args.y_row_stride + part * args.y_part_stride);
  const int half = args.dim / 2;
  for (int first = 0; first < args.dim; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(args.dim);
    const Ints pair = select(i < Ints(half), i, i - Ints(half));
    const Ints from = pair * Ints(2) + select(i < Ints(half), Ints(0), Ints(1));
    y.store_if(in, i, x.load_if(in, from, 0.0F));
  }
}

}  // namespace outrider::simt
