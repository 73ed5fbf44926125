// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/products/group_codes.h"

namespace outrider::simt {

// Inputs of products become codes, see GroupedInputs.
struct PackInputsArgs {
  Rows<const float> x;  // [rows, k]
  Rows<int8_t> codes;   // [chunk][padded rows][32]
  Rows<float> scales;
  Rows<int> sums;
  int rows;
  int padded;
  int k;
};

// A warp takes a chunk of a row; a lane has one of its numbers. The largest magnitude becomes 127.
SIMT void pack_inputs(const Block& block, const PackInputsArgs& args) {
  const int chunks = args.k / kChunk;
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.padded * chunks) return;
  block.wait_for_previous();
  const int row = item / chunks, chunk = item % chunks;
  const Ints lane = lane_id();
  Floats x(0.0F);
  if (row < args.rows) x = args.x.from(static_cast<int64_t>(row) * args.k + chunk * kChunk).load(lane);
  const Floats largest = max_lanes(abs_of(x), kWarp);
  const Bools any = largest > Floats(0.0F);
  const Floats inverse =
      select(any, div_rn(Floats(127.0F), select(any, largest, Floats(1.0F))), Floats(0.0F));
  // Rounding of the inverse may lead beyond 127.
  const Ints code = round_int(max_of(min_of(mul_rn(x, inverse), Floats(127.0F)), Floats(-127.0F)));
  const Ints sum = sum_lanes(code, 16);
  const int64_t place = static_cast<int64_t>(chunk) * args.padded + row;
  args.codes.from(place * kChunk).store(places_of_codes(), code);
  args.scales.from(place).store_if(lane == Ints(0), lane, div_rn(largest, Floats(127.0F)));
  const auto sums = args.sums.from(static_cast<int64_t>(chunk) * 2 * args.padded + row);
  sums.store_if((lane & Ints(15)) == Ints(0), (lane >> Ints(4)) * Ints(args.padded), sum);
}

}  // namespace outrider::simt
