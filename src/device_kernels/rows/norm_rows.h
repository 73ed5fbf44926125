// SPDX-License-Identifier: Apache-2.0
// Norms of whole rows, which products read: a block takes a row, and packs what it has normalized.
#pragma once

#include "device_kernels/products/pack_inputs.h"
#include "device_kernels/rows/rms_norm.h"

namespace outrider::simt {

// x += delta; y = x / sqrt(mean of x * x + epsilon) * weight. The packed rows are y.
struct NormRowsArgs {
  Rows<float> x;            // [rows, dim]
  Rows<const float> delta;  // [rows, dim], or null
  Weights<float> weight;    // [dim]
  Rows<float> y;            // [rows, dim], may be x
  InputCodes packed;        // where `dim` is chunks; or null
  int rows;
  int dim;
  float epsilon;
};

// Shared memory of norm_rows(): the factor of the row, in every lane, its numbers and its weights.
struct NormRowMemory {
  static constexpr int kFactor = kWarp * 4;
  static constexpr int kMostNumbers = 8192;  // in a little more than 64 KiB, which every device has
  static constexpr int kMostWarps = 8;

  SIMT static int words(int dim) { return (dim + kWarp - 1) / kWarp * kWarp; }
  // The shape of a launch. A lane has eight numbers, or more where a row is long.
  static constexpr int bytes(int dim) { return kFactor + 2 * ((dim + kWarp - 1) / kWarp * kWarp * 4); }
  static constexpr int warps(int dim) {
    const int wanted = (dim + 8 * kWarp - 1) / (8 * kWarp);
    return wanted < kMostWarps ? wanted : kMostWarps;
  }
};

// Parts of a row that a warp orders from memory before it waits for them.
inline constexpr int kNormLoads = 4;

// The parts of a row that this warp sums up go to shared memory, with their weights; beyond the row they are
// 0.
SIMT_PART void load_norm_row(const Block& block, const NormRowsArgs& args, const Shared<float>& numbers,
                             const Shared<float>& weights) {
  const int64_t place = static_cast<int64_t>(block.index()) * args.dim;
  const auto x = args.x.from(place);
  const bool adds = !args.delta.is_null();
  const auto delta = args.delta.from(adds ? place : 0);
  const int apart = block.warps() * kWarp;
  for (int first = block.warp() * kWarp; first < args.dim; first += kNormLoads * apart) {
    Floats sums[kNormLoads], added[kNormLoads], weight[kNormLoads];
    SIMT_UNROLL
    for (int part = 0; part < kNormLoads; ++part) {
      const Ints i = lane_id() + Ints(first + part * apart);
      if (first + part * apart >= args.dim) break;
      sums[part] = x.load_if(i < Ints(args.dim), i, 0.0F);
      if (adds) added[part] = delta.load_if(i < Ints(args.dim), i, 0.0F);
      weight[part] = args.weight.load_if(i < Ints(args.dim), i, 0.0F);
    }
    SIMT_UNROLL
    for (int part = 0; part < kNormLoads; ++part) {
      const Ints i = lane_id() + Ints(first + part * apart);
      if (first + part * apart >= args.dim) break;
      if (adds) {
        sums[part] = add_rn(sums[part], added[part]);
        x.store_if(i < Ints(args.dim), i, sums[part]);
      }
      numbers.put_from(first + part * apart, sums[part]);
      weights.put_from(first + part * apart, weight[part]);
    }
  }
}

// A block takes a row, and padding rows where rows are packed. One warp adds up the squares, in the order of
// rms_norm(), so that bits do not depend on the number of warps.
SIMT void norm_rows(const Block& block, const NormRowsArgs& args) {
  block.wait_for_previous();
  if (block.index() >= args.rows) {
    for (int chunk = block.warp(); chunk < args.dim / kChunk; chunk += block.warps())
      pack_chunk(args.packed, block.index(), chunk, Floats(0.0F));
    return;
  }
  const int words = NormRowMemory::words(args.dim);
  const Shared<float> factor(block, 0, kWarp), numbers(block, NormRowMemory::kFactor, words),
      weights(block, NormRowMemory::kFactor + 4 * words, words);
  load_norm_row(block, args, numbers, weights);
  block.sync();
  if (block.warp() == 0) factor.put_from(0, rms_factor(numbers, args.dim, args.epsilon));
  block.sync();
  const auto y = args.y.from(static_cast<int64_t>(block.index()) * args.dim);
  for (int first = block.warp() * kWarp; first < args.dim; first += block.warps() * kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Floats number =
        mul_rn(mul_rn(numbers.get_from(first), factor.get_from(0)), weights.get_from(first));
    y.store_if(i < Ints(args.dim), i, number);
    if (!args.packed.is_null()) pack_chunk(args.packed, block.index(), first / kChunk, number);
  }
}

}  // namespace outrider::simt
