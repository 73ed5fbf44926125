// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// x += delta; y = x / sqrt(mean of x * x + epsilon) * weight, row by row. Rows of x and y may have gaps, so
// that heads of a row can be rows.
struct RmsNormArgs {
  Rows<float> x;            // [rows, x_stride]
  Rows<const float> delta;  // [rows, dim]; null: none
  Weights<float> weight;    // [dim]; null: nothing is normalized
  Rows<float> y;            // [rows, y_stride]
  int rows;
  int dim;
  int x_stride;
  int y_stride;
  float epsilon;
};

// The sum of squares in four vectors of kWidth chains, as a CPU's table with vectors of that width has it;
// the last numbers of a row go to the first vector.
template <int kWidth>
SIMT_PART Floats sum_of_squares(const Rows<float>& x, int dim) {
  constexpr int kRegisters = kWidth * 4 / kWarp;
  const Ints lane = lane_id();
  Floats chains[kRegisters];
  SIMT_UNROLL
  for (int r = 0; r < kRegisters; ++r) chains[r] = Floats(0.0F);
  int i = 0;
  for (; i + 4 * kWidth <= dim; i += 4 * kWidth) {
    SIMT_UNROLL
    for (int r = 0; r < kRegisters; ++r) {
      const Floats v = x.load(lane + Ints(i + r * kWarp));
      chains[r] = fma_rn(v, v, chains[r]);
    }
  }
  const Bools in_first = lane < Ints(kWidth);
  for (; i < dim; i += kWidth) {
    const Floats v = x.load_if(in_first && lane + Ints(i) < Ints(dim), lane + Ints(i), 0.0F);
    chains[0] = select(in_first, fma_rn(v, v, chains[0]), chains[0]);
  }
  // (first + second) + (third + fourth) vector
  SIMT_UNROLL
  for (int r = 0; r < kRegisters; ++r) chains[r] = add_rn(chains[r], shuffle_xor(chains[r], kWidth));
  Floats sum = chains[0];
  if (kRegisters == 1) sum = add_rn(sum, shuffle_xor(sum, 2 * kWidth));
  if (kRegisters == 2) sum = add_rn(sum, chains[kRegisters - 1]);
  return sum_lanes(sum, kWidth);
}

// A warp takes a row.
template <int kWidth>
SIMT void rms_norm(const Block& block, const RmsNormArgs& args) {
  const int row = block.index() * block.warps() + block.warp();
  if (row >= args.rows) return;
  block.wait_for_previous();
  const Ints lane = lane_id();
  const auto x = args.x.from(static_cast<int64_t>(row) * args.x_stride);
  if (!args.delta.is_null()) {
    const auto delta = args.delta.from(static_cast<int64_t>(row) * args.dim);
    for (int first = 0; first < args.dim; first += kWarp) {
      const Ints i = lane + Ints(first);
      const Bools in = i < Ints(args.dim);
      x.store_if(in, i, add_rn(x.load_if(in, i, 0.0F), delta.load_if(in, i, 0.0F)));
    }
    block.sync_warp();
  }
  if (args.weight.is_null()) return;
  const Floats mean = div_rn(sum_of_squares<kWidth>(x, args.dim), Floats(to_float(args.dim)));
  const Floats scale = div_rn(Floats(1.0F), sqrt_rn(add_rn(mean, Floats(args.epsilon))));
  const auto y = args.y.from(static_cast<int64_t>(row) * args.y_stride);
  for (int first = 0; first < args.dim; first += kWarp) {
    const Ints i = lane + Ints(first);
    const Bools in = i < Ints(args.dim);
    y.store_if(in, i, mul_rn(mul_rn(x.load_if(in, i, 0.0F), scale), args.weight.load_if(in, i, 0.0F)));
  }
}

}  // namespace outrider::simt
