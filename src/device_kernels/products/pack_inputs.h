// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/products/group_codes.h"

namespace outrider::simt {

// Where inputs of products become codes, see GroupedInputs.
struct InputCodes {
  Rows<int8_t> codes;  // [chunk][padded rows][32]; null: nothing is packed
  Rows<float> scales;  // [chunk][padded rows]
  Rows<int> sums;      // [chunk][2][padded rows]
  int padded;

  SIMT bool is_null() const { return codes.is_null(); }
};

// Packs a chunk of a row, of which each lane has a number. The largest magnitude becomes 127. Chunks of
// padding rows are zeros.
SIMT void pack_chunk(const InputCodes& to, int row, int chunk, Floats x) {
  const Ints lane = lane_id();
  const Floats largest = max_lanes(abs_of(x), kWarp);
  const Bools any = largest > Floats(0.0F);
  const Floats inverse =
      select(any, div_rn(Floats(127.0F), select(any, largest, Floats(1.0F))), Floats(0.0F));
  // Rounding of the inverse may lead beyond 127.
  const Ints code = round_int(max_of(min_of(mul_rn(x, inverse), Floats(127.0F)), Floats(-127.0F)));
  const Ints sum = sum_lanes(code, 16);
  const int64_t place = static_cast<int64_t>(chunk) * to.padded + row;
  to.codes.from(place * kChunk).store(places_of_codes(), code);
  to.scales.from(place).store_if(lane == Ints(0), lane, div_rn(largest, Floats(127.0F)));
  const auto sums = to.sums.from(static_cast<int64_t>(chunk) * 2 * to.padded + row);
  sums.store_if((lane & Ints(15)) == Ints(0), (lane >> Ints(4)) * Ints(to.padded), sum);
}

struct PackInputsArgs {
  Rows<const float> x;  // [rows, k]
  InputCodes packed;
  int rows;
  int k;
};

// A warp takes a chunk of a row.
SIMT void pack_inputs(const Block& block, const PackInputsArgs& args) {
  const int chunks = args.k / kChunk;
  const int item = block.index() * block.warps() + block.warp();
  if (item >= args.packed.padded * chunks) return;
  block.wait_for_previous();
  const int row = item / chunks, chunk = item % chunks;
  Floats x(0.0F);
  if (row < args.rows) x = args.x.from(static_cast<int64_t>(row) * args.k + chunk * kChunk).load(lane_id());
  pack_chunk(args.packed, row, chunk, x);
}

}  // namespace outrider::simt
