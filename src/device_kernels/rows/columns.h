// SPDX-License-Identifier: Apache-2.0
// Steps of draft heads over rows of logits and over the places of blocks.
#pragma once

#include "device_kernels/rows/portable_functions.h"
#include "device_kernels/rows/row_part.h"

namespace outrider::simt {

// y[row][j] = base[row % base_rows][j] + x[row][places[j]], or the number of the base where the place is -1.
// Without a base y is x, or -infinity.
struct ColumnsArgs {
  Rows<const float> x;     // [rows, count]
  Rows<const float> base;  // [base_rows, width], or null
  List<int> places;        // [width]
  Rows<float> y;           // [rows, width]
  int rows;
  int count;
  int width;
  int base_rows;
};

// A warp takes 32 columns of a row.
SIMT void place_columns(const Block& block, const ColumnsArgs& args) {
  const auto [row, j, in] = row_part_of(block, args.rows, args.width);
  if (row < 0) return;
  block.wait_for_previous();
  const Ints place = args.places.load_if(in, j, -1);
  const Bools has_place = in && place >= Ints(0);
  const Floats x = args.x.from(static_cast<int64_t>(row) * args.count).load_if(has_place, place, 0.0F);
  Floats y = select(has_place, x, Floats(-__builtin_huge_valf()));
  if (!args.base.is_null()) {
    const int64_t first = static_cast<int64_t>(row % args.base_rows) * args.width;
    const Floats base = args.base.from(first).load_if(in, j, 0.0F);
    y = select(has_place, add_rn(base, x), base);
  }
  args.y.from(static_cast<int64_t>(row) * args.width).store_if(in, j, y);
}

// y[rows, dim] = the mean of `count` rows of x[rows, count, dim], each divided before the sum
struct MeansArgs {
  Rows<const float> x;
  Rows<float> y;
  int rows;
  int count;
  int dim;
};

// A warp takes 32 numbers of a row.
SIMT void means(const Block& block, const MeansArgs& args) {
  const auto [row, i, in] = row_part_of(block, args.rows, args.dim);
  if (row < 0) return;
  block.wait_for_previous();
  const auto x = args.x.from(static_cast<int64_t>(row) * args.count * args.dim);
  Floats sum(0.0F);
  for (int one = 0; one < args.count; ++one) {
    const Floats number = x.from(static_cast<int64_t>(one) * args.dim).load_if(in, i, 0.0F);
    sum = add_rn(sum, div_rn(number, Floats(to_float(args.count))));
  }
  args.y.from(static_cast<int64_t>(row) * args.dim).store_if(in, i, sum);
}

// See LayerBackend::Convolution.
struct BlockConvolutionArgs {
  Weights<float> base;        // [taps, dim]
  Rows<const float> weights;  // of a place: [taps, dim / group], weight_stride apart
  Rows<float> x;              // [rows, dim], changed in place
  int rows;
  int places;  // of a block
  int taps;
  int dim;
  int group;
  int weight_stride;
};

// A warp takes 32 channels of a block, from its last place to its first, so that later places read a place
// before it changes.
SIMT void convolve_blocks(const Block& block, const BlockConvolutionArgs& args) {
  const int parts = (args.dim + kWarp - 1) / kWarp;
  const int item = block.index() * block.warps() + block.warp();
  const int first = item / parts * args.places;
  if (first >= args.rows) return;
  block.wait_for_previous();
  const Ints channel = lane_id() + Ints(item % parts * kWarp), group = channel / Ints(args.group);
  const Bools in = channel < Ints(args.dim);
  const int end = first + args.places < args.rows ? first + args.places : args.rows;
  for (int row = end - 1; row >= first; --row) {
    const auto weights = args.weights.from(static_cast<int64_t>(row) * args.weight_stride);
    Floats sum(0.0F);
    for (int tap = 0; tap < args.taps && tap <= row - first; ++tap) {
      const Floats base = args.base.from(static_cast<int64_t>(tap) * args.dim).load_if(in, channel, 0.0F);
      const Floats own = weights.load_if(in, group + Ints(tap * (args.dim / args.group)), 0.0F);
      const Floats x = args.x.from(static_cast<int64_t>(row - tap) * args.dim).load_if(in, channel, 0.0F);
      sum = add_rn(sum, mul_rn(add_rn(base, own), x));
    }
    args.x.from(static_cast<int64_t>(row) * args.dim).store_if(in, channel, sum);
  }
}

// Cells of DSpark's head, see LayerBackend::CellStep.
struct CellStepArgs {
  Rows<const float> x;       // [rows, 3, dim]
  Rows<const float> before;  // [rows, dim]
  Rows<float> cells;         // [rows, dim]
  Rows<float> y;             // [rows, dim]
  int rows;
  int dim;
};

SIMT Floats portable_tanh_of(Floats x) {
  const Floats two(2.0F);
  return sub_rn(mul_rn(two, portable_sigmoid_of(mul_rn(two, x))), Floats(1.0F));
}

// A warp takes 32 numbers of a row.
SIMT void step_cells(const Block& block, const CellStepArgs& args) {
  const auto [row, i, in] = row_part_of(block, args.rows, args.dim);
  if (row < 0) return;
  block.wait_for_previous();
  const int64_t first = static_cast<int64_t>(row) * args.dim;
  const auto x = args.x.from(3 * first);
  const Floats gate = portable_sigmoid_of(x.load_if(in, i, 0.0F));
  const Floats candidate = portable_tanh_of(x.from(args.dim).load_if(in, i, 0.0F));
  const Floats before = args.before.from(first).load_if(in, i, 0.0F);
  const Floats added = mul_rn(sub_rn(Floats(1.0F), gate), candidate);
  args.cells.from(first).store_if(in, i, add_rn(mul_rn(gate, before), added));
  args.y.from(first).store_if(in, i, portable_tanh_of(x.from(2 * args.dim).load_if(in, i, 0.0F)));
}

}  // namespace outrider::simt
