// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit weights on tensor cores. Inputs become numbers of the weights' type. A stretch of 256
// inputs is one chain of tiles, which the tensor core adds to each other; stretches are added in order. So a
// row has equal bits among any other rows. A CPU's table has other bits.
#pragma once

#include "device_kernels/products/group_codes.h"
#include "device_kernels/simt/bf16_bits.h"
#include "device_kernels/simt/tensor_core.h"

namespace outrider::simt {

inline constexpr int kTileInputs = 16;
inline constexpr int kStretchTiles = 16;
inline constexpr int kTileRowWords = kTileInputs / 2;  // words of a row's inputs

// The types of weights, and of inputs beside them.
struct TensorBf16 {
  SIMT static Ints bits_of_number(Floats x) { return bf16_bits_of(x); }
  SIMT static Floats widen(Ints bits) { return from_bits(bits << Ints(16)); }
  SIMT static void multiply(Floats (&c)[4], const Ints (&a)[4], const Ints (&b)[2]) { mma_bf16(c, a, b); }
};
struct TensorF16 {
  SIMT static Ints bits_of_number(Floats x) { return half_bits_of(x); }
  SIMT static Floats widen(Ints bits) { return from_half(bits); }
  SIMT static void multiply(Floats (&c)[4], const Ints (&a)[4], const Ints (&b)[2]) { mma_f16(c, a, b); }
};

// Word w of a row's tile has inputs 2i and 2i + 1, where i is w / 2 + (w % 2) * 4.
SIMT Ints input_of_word(Ints word) { return ((word >> Ints(1)) + ((word & Ints(1)) << Ints(2))) << Ints(1); }

struct PackTensorInputsArgs {
  Rows<const float> x;  // [rows, k]
  Rows<int> words;      // [tile of inputs][padded rows][8 words]
  int rows;
  int padded;
  int k;
};

// A warp takes four rows of a tile, a lane one of their words. Padding is 0.
template <typename Type>
SIMT void pack_tensor_inputs(const Block& block, const PackTensorInputsArgs& args) {
  const int parts = args.padded / 4, item = block.index() * block.warps() + block.warp();
  const int tile = item / parts, first_row = item % parts * 4;
  if (tile * kTileInputs >= args.k) return;
  block.wait_for_previous();
  const Ints row = (lane_id() >> Ints(3)) + Ints(first_row);
  const Ints input = input_of_word(lane_id() & Ints(kTileRowWords - 1)) + Ints(tile * kTileInputs);
  const Bools is_row = row < Ints(args.rows);
  const auto x = args.x.from(first_row < args.rows ? static_cast<int64_t>(first_row) * args.k : 0);
  const Ints place = (row - Ints(first_row)) * Ints(args.k) + input;
  const Floats low = x.load_if(is_row && input < Ints(args.k), place, 0.0F);
  const Floats high = x.load_if(is_row && input + Ints(1) < Ints(args.k), place + Ints(1), 0.0F);
  const Ints word = Type::bits_of_number(low) | (Type::bits_of_number(high) << Ints(16));
  args.words.from((static_cast<int64_t>(tile) * args.padded + first_row) * kTileRowWords)
      .store(lane_id(), word);
}

struct TensorInputs {
  Rows<const int> words;  // see PackTensorInputsArgs
  int rows;
  int padded;
};

struct TensorProductArgs {
  Weights<int> weights;  // [panel][tile of inputs][lane][4 words], as mma_bf16() has them; padding is 0
  TensorInputs x;
  Rows<float> y;  // [rows, y_stride], the product's outputs first
  int n;
  int k;
  int y_stride;
};

// Shared memory of few_tensor_rows(): the rings, the sums of a stretch of each warp, and the outputs.
struct TensorMemory {
  static constexpr int kSums = CodeRing::kMostWarps * kTileSums * 4;
  static constexpr int kBytes = CodeRing::kMostBytes + kSums + kTileSums * 4;
};

// Stores the outputs of register `index` of mma_bf16().
SIMT void store_tensor(const TensorProductArgs& args, int panel, int first_row, int index, Floats y) {
  const Ints row = (lane_id() & Ints(3)) * Ints(2) + Ints(first_row + index % 2);
  const Ints feature = (lane_id() >> Ints(2)) + Ints(panel * kPanelFeatures + index / 2 * 8);
  args.y.store_if(row < Ints(args.x.rows) && feature < Ints(args.n), row * Ints(args.y_stride) + feature, y);
}

SIMT void load_tensor_rows(const TensorInputs& x, int tile, int row, Ints (&b)[2]) {
  x.words.from((static_cast<int64_t>(tile) * x.padded + row) * kTileRowWords).load_pairs(0, b);
}

// The sums of a stretch of a panel and eight rows, in the registers of mma_bf16().
template <typename Type>
SIMT_PART void add_tensor_stretch(const TensorInputs& x, CodeRing& ring, int begin, int end, int row,
                                  Floats (&sums)[4]) {
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) sums[i] = Floats(0.0F);
  for (int tile = begin; tile < end; ++tile) {
    Ints a[4], b[2];
    ring.take(a);
    load_tensor_rows(x, tile, row, b);
    Type::multiply(sums, a, b);
  }
}

// A block takes a panel and eight rows. Its warps take stretches in turn, and a lane for each output adds
// them in order.
template <typename Type>
SIMT void few_tensor_rows(const Block& block, const TensorProductArgs& args) {
  const int panels = (args.n + kPanelFeatures - 1) / kPanelFeatures;
  const int panel = block.index() % panels, first_row = block.index() / panels * kTileRows;
  const int tiles = (args.k + kTileInputs - 1) / kTileInputs, round = block.warps() * kStretchTiles;
  CodeRing ring(block, args.weights, panel, tiles, kStretchTiles);
  block.wait_for_previous();
  const Shared<float> sums(block, CodeRing::kMostBytes, TensorMemory::kSums / 4);
  const Shared<float> outputs(block, CodeRing::kMostBytes + TensorMemory::kSums, kTileSums);
  for (int begin = 0; begin < tiles; begin += round) {
    const int own = begin + block.warp() * kStretchTiles;
    if (own < tiles) {
      Floats stretch[4];
      const int end = own + kStretchTiles < tiles ? own + kStretchTiles : tiles;
      add_tensor_stretch<Type>(args.x, ring, own, end, first_row, stretch);
      SIMT_UNROLL
      for (int i = 0; i < 4; ++i) sums.put_from(block.warp() * kTileSums + i * kWarp, stretch[i]);
    }
    block.sync();
    for (int part = block.warp(); part < kTileSums / kWarp; part += block.warps()) {
      Floats y(0.0F);
      if (begin > 0) y = outputs.get_from(part * kWarp);
      for (int warp = 0; warp < block.warps() && begin + warp * kStretchTiles < tiles; ++warp)
        y = add_rn(y, sums.get_from(warp * kTileSums + part * kWarp));
      outputs.put_from(part * kWarp, y);
      if (begin + round >= tiles) store_tensor(args, panel, first_row, part, y);
    }
    block.sync();
  }
}

// Rows that a warp of many_tensor_rows() keeps in registers.
inline constexpr int kTensorRows = 32;
inline constexpr int kTensorRowTiles = kTensorRows / kTileRows;

// The sums of a stretch of a panel and the rows of a warp are added to y.
template <typename Type>
SIMT_PART void add_many_stretch(const TensorProductArgs& args, const Weights<int>& panel, int begin, int end,
                                int first_row, Floats (&y)[kTensorRowTiles][4]) {
  Floats sums[kTensorRowTiles][4];
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i) sums[i / 4][i % 4] = Floats(0.0F);
  for (int tile = begin; tile < end; ++tile) {
    Ints a[4];
    panel.load4(lane_id() * Ints(4) + Ints(tile * kTileWords), a);
    SIMT_UNROLL
    for (int of_rows = 0; of_rows < kTensorRowTiles; ++of_rows) {
      const int row = first_row + of_rows * kTileRows;
      if (row >= args.x.padded) break;
      Ints b[2];
      load_tensor_rows(args.x, tile, row, b);
      Type::multiply(sums[of_rows], a, b);
    }
  }
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i) y[i / 4][i % 4] = add_rn(y[i / 4][i % 4], sums[i / 4][i % 4]);
}

// A warp takes a panel and 32 rows.
template <typename Type>
SIMT void many_tensor_rows(const Block& block, const TensorProductArgs& args) {
  const int panels = (args.n + kPanelFeatures - 1) / kPanelFeatures;
  const int item = block.index() * block.warps() + block.warp();
  const int panel = item % panels, first_row = item / panels * kTensorRows;
  if (first_row >= args.x.padded) return;
  block.wait_for_previous();
  const int tiles = (args.k + kTileInputs - 1) / kTileInputs;
  const auto weights = args.weights.from(static_cast<int64_t>(panel) * tiles * kTileWords);
  Floats y[kTensorRowTiles][4];
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i) y[i / 4][i % 4] = Floats(0.0F);
  for (int begin = 0; begin < tiles; begin += kStretchTiles) {
    const int end = begin + kStretchTiles < tiles ? begin + kStretchTiles : tiles;
    add_many_stretch<Type>(args, weights, begin, end, first_row, y);
  }
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i)
    store_tensor(args, panel, first_row + i / 4 * kTileRows, i % 4, y[i / 4][i % 4]);
}

}  // namespace outrider::simt
