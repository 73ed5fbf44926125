// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// Rotates pairs (i, i + rotated / 2) of the first `rotated` numbers of each head, in place.
struct RopeArgs {
  Rows<float> x;                          // [rows, x_stride], the heads side by side
  List<float> rotations;                  // [rows, rotated]: cosines, then sines
  Rows<const int> places = {nullptr, 0};  // [rows]: which of the rotations are a row's; null: row after row
  int rows;
  int heads;
  int head_dim;
  int rotated;
  int x_stride;
};

// A warp turns a head of a row. Products are rounded before they are added.
SIMT_PART void rotate_head(const RopeArgs& args, int row, int head) {
  const int half = args.rotated / 2;
  const auto x = args.x.from(static_cast<int64_t>(row) * args.x_stride + head * args.head_dim);
  const int place = args.places.is_null() ? row : args.places.load_one(row);
  const auto rotations = args.rotations.from(static_cast<int64_t>(place) * args.rotated);
  for (int first = 0; first < half; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(half);
    const Floats cosine = rotations.load_if(in, i, 0.0F), sine = rotations.load_if(in, i + Ints(half), 0.0F);
    const Floats a = x.load_if(in, i, 0.0F), b = x.load_if(in, i + Ints(half), 0.0F);
    x.store_if(in, i, sub_rn(mul_rn(a, cosine), mul_rn(b, sine)));
    x.store_if(in, i + Ints(half), add_rn(mul_rn(b, cosine), mul_rn(a, sine)));
  }
}

// A warp takes a head of a row.
SIMT void rope(const Block& block, const RopeArgs& args) {
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.rows * args.heads) return;
  block.wait_for_previous();
  rotate_head(args, item / args.heads, item % args.heads);
}

}  // namespace outrider::simt
