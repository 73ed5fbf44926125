// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit and 8-bit weights on tensor cores. Inputs become numbers of the weights' type, or bf16
// beside F8. A stretch of 256 inputs, or of a block of F8, is one chain of tiles, which the tensor core adds
// to each other. Stretches are added in order, times the scale of a block. So a row has equal bits among any
// other rows. A CPU's table has other bits.
#pragma once

#include "device_kernels/products/float_products.h"
#include "device_kernels/simt/bf16_bits.h"
#include "device_kernels/simt/tensor_core.h"

namespace outrider::simt {

inline constexpr int kTileInputs = 16;
inline constexpr int kTileRowWords = kTileInputs / 2;  // words of a row's inputs

// The types of weights, and of inputs beside them. A tile of weights has kParts tiles of inputs.
struct TensorBf16 {
  static constexpr int kParts = 1, kStretchTiles = 16;
  SIMT static Ints bits_of_number(Floats x) { return bf16_bits_of(x); }
  SIMT static Floats widen(Ints bits) { return from_bits(bits << Ints(16)); }
  SIMT static void read_part(const Ints (&words)[4], int, Ints (&a)[4]) {
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) a[i] = words[i];
  }
  SIMT static void multiply(Floats (&c)[4], const Ints (&a)[4], const Ints (&b)[2]) { mma_bf16(c, a, b); }
};
struct TensorF16 {
  static constexpr int kParts = 1, kStretchTiles = 16;
  SIMT static Ints bits_of_number(Floats x) { return half_bits_of(x); }
  SIMT static Floats widen(Ints bits) { return from_half(bits); }
  SIMT static void read_part(const Ints (&words)[4], int, Ints (&a)[4]) {
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) a[i] = words[i];
  }
  SIMT static void multiply(Floats (&c)[4], const Ints (&a)[4], const Ints (&b)[2]) { mma_f16(c, a, b); }
};
// Words 2p and 2p + 1 have the numbers of part p: the upper bytes of the halves of a word are one register of
// bf16, and the lower bytes the next one.
struct TensorF8 {
  static constexpr int kParts = 2, kStretchTiles = 4;
  // Exact: E4M3 with the exponent of bf16 is 2^-120 times the number.
  SIMT static Ints widen_pair(Ints bytes) {
    return multiply_bf16_pairs(
        (bytes & Ints(static_cast<int>(0x80008000))) | ((bytes & Ints(0x7F007F00)) >> Ints(4)), 120);
  }
  SIMT static void read_part(const Ints (&words)[4], int part, Ints (&a)[4]) {
    SIMT_UNROLL
    for (int i = 0; i < 2; ++i) {
      const Ints word = part == 0 ? words[i] : words[2 + i];
      a[2 * i] = widen_pair(word);
      a[2 * i + 1] = widen_pair(word << Ints(8));
    }
  }
  SIMT static void multiply(Floats (&c)[4], const Ints (&a)[4], const Ints (&b)[2]) { mma_bf16(c, a, b); }
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
  Weights<int> weights;  // [panel][tile][lane][4 words], as mma_bf16() or TensorF8 has them; padding is 0
  Weights<float> scales = {};  // of blocks of F8, [panel][stretch][16], or null
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

// The sum so far and the sum of a stretch, in register `index` of mma_bf16().
SIMT Floats add_tensor_sum(const TensorProductArgs& args, int panel, int stretch, int index, Floats y,
                           Floats sum) {
  if (args.scales.is_null()) return add_rn(y, sum);
  const int64_t of_panel = args.k / F8Weights::kStretch;
  const auto scales = args.scales.from((panel * of_panel + stretch) * kPanelFeatures);
  return fma_rn(sum, scales.load((lane_id() >> Ints(2)) + Ints(index / 2 * 8)), y);
}

template <typename Type>
SIMT int tiles_of(const TensorProductArgs& args) {
  constexpr int kInputs = kTileInputs * Type::kParts;
  return (args.k + kInputs - 1) / kInputs;
}

// The sums of a stretch of a panel and eight rows, in the registers of mma_bf16().
template <typename Type>
SIMT_PART void add_tensor_stretch(const TensorInputs& x, CodeRing& ring, int begin, int end, int row,
                                  Floats (&sums)[4]) {
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) sums[i] = Floats(0.0F);
  for (int tile = begin; tile < end; ++tile) {
    Ints words[4];
    ring.take(words);
    SIMT_UNROLL
    for (int part = 0; part < Type::kParts; ++part) {
      Ints a[4], b[2];
      Type::read_part(words, part, a);
      load_tensor_rows(x, tile * Type::kParts + part, row, b);
      Type::multiply(sums, a, b);
    }
  }
}

// A block takes a panel and eight rows. Its warps take stretches in turn, and a lane for each output adds
// them in order.
template <typename Type>
SIMT void few_tensor_rows(const Block& block, const TensorProductArgs& args) {
  constexpr int kStretchTiles = Type::kStretchTiles;
  const int panels = (args.n + kPanelFeatures - 1) / kPanelFeatures;
  const int panel = block.index() % panels, first_row = block.index() / panels * kTileRows;
  const int tiles = tiles_of<Type>(args), round = block.warps() * kStretchTiles;
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
        y = add_tensor_sum(args, panel, begin / kStretchTiles + warp, part, y,
                           sums.get_from(warp * kTileSums + part * kWarp));
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
SIMT_PART void add_many_stretch(const TensorProductArgs& args, int panel, int stretch, int first_row,
                                Floats (&y)[kTensorRowTiles][4]) {
  const int tiles = tiles_of<Type>(args), begin = stretch * Type::kStretchTiles;
  const int end = begin + Type::kStretchTiles < tiles ? begin + Type::kStretchTiles : tiles;
  const auto weights = args.weights.from(static_cast<int64_t>(panel) * tiles * kTileWords);
  Floats sums[kTensorRowTiles][4];
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i) sums[i / 4][i % 4] = Floats(0.0F);
  for (int tile = begin; tile < end; ++tile) {
    Ints words[4];
    weights.load4(lane_id() * Ints(4) + Ints(tile * kTileWords), words);
    SIMT_UNROLL
    for (int part = 0; part < Type::kParts; ++part) {
      Ints a[4];
      Type::read_part(words, part, a);
      SIMT_UNROLL
      for (int of_rows = 0; of_rows < kTensorRowTiles; ++of_rows) {
        const int row = first_row + of_rows * kTileRows;
        if (row >= args.x.padded) break;
        Ints b[2];
        load_tensor_rows(args.x, tile * Type::kParts + part, row, b);
        Type::multiply(sums[of_rows], a, b);
      }
    }
  }
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i)
    y[i / 4][i % 4] = add_tensor_sum(args, panel, stretch, i % 4, y[i / 4][i % 4], sums[i / 4][i % 4]);
}

// A warp takes a panel and 32 rows.
template <typename Type>
SIMT void many_tensor_rows(const Block& block, const TensorProductArgs& args) {
  const int panels = (args.n + kPanelFeatures - 1) / kPanelFeatures;
  const int item = block.index() * block.warps() + block.warp();
  const int panel = item % panels, first_row = item / panels * kTensorRows;
  if (first_row >= args.x.padded) return;
  block.wait_for_previous();
  Floats y[kTensorRowTiles][4];
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i) y[i / 4][i % 4] = Floats(0.0F);
  const int tiles = tiles_of<Type>(args);
  for (int stretch = 0; stretch * Type::kStretchTiles < tiles; ++stretch)
    add_many_stretch<Type>(args, panel, stretch, first_row, y);
  SIMT_UNROLL
  for (int i = 0; i < kTensorRowTiles * 4; ++i)
    store_tensor(args, panel, first_row + i / 4 * kTileRows, i % 4, y[i / 4][i % 4]);
}

}  // namespace outrider::simt
