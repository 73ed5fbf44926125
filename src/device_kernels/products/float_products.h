// SPDX-License-Identifier: Apache-2.0
// Products with plain numbers in the order of kernels/simd/panel_linear.h. Inputs are cut into stretches of
// 256, or of a block of F8. Each is added up in kChains chains, and the sums of stretches, times the scale of
// a block, are added in order.
#pragma once

#include "device_kernels/products/group_codes.h"

namespace outrider::simt {

// Loads the first `lanes` of the numbers side by side from `first` on; widen() makes f32 of what is loaded.
struct F32Weights {
  using Stored = float;
  static constexpr int kStretch = 256;
  SIMT static Floats widen(Floats numbers) { return numbers; }
  SIMT static Floats load(const Weights<float>& weights, int64_t first, int lanes) {
    return weights.load_some(first, lanes, 0.0F);
  }
};
struct F16Weights {
  using Stored = uint16_t;
  static constexpr int kStretch = 256;
  SIMT static Floats widen(Ints bits) { return from_half(bits); }
  SIMT static Floats load(const Weights<uint16_t>& weights, int64_t first, int lanes) {
    return widen(weights.load_some(first, lanes, 0));
  }
};
struct Bf16Weights {
  using Stored = uint16_t;
  static constexpr int kStretch = 256;
  SIMT static Floats widen(Ints bits) { return from_bits(bits << Ints(16)); }
  SIMT static Floats load(const Weights<uint16_t>& weights, int64_t first, int lanes) {
    return widen(weights.load_some(first, lanes, 0));
  }
};
// E4M3, times 2^-8: the bits as half precision. Bit 14 of a code with 16 bits is its sign, too.
struct F8Weights {
  using Stored = int8_t;
  static constexpr int kStretch = 128;
  SIMT static Floats load(const Weights<int8_t>& weights, int64_t first, int lanes) {
    return from_half((weights.load_some(first, lanes, 0) << Ints(7)) & Ints(0xBFFF));
  }
};

template <typename Numbers>
struct FloatProductArgs {
  Weights<typename Numbers::Stored> weights;  // [panel][k][16]
  Weights<float> scales = {};                 // [panel][stretch][16], or null
  Rows<const float> x;                        // [rows, k]
  Rows<float> y;                              // [rows, y_stride], the product's outputs first
  int rows;
  int n;
  int k;
  int y_stride;
};
using F32ProductArgs = FloatProductArgs<F32Weights>;
using F16ProductArgs = FloatProductArgs<F16Weights>;
using Bf16ProductArgs = FloatProductArgs<Bf16Weights>;
using F8ProductArgs = FloatProductArgs<F8Weights>;

inline constexpr int kChains = 4;
inline constexpr int kRowPairs = kTileRows / 2;

// Shared memory: the sums of a stretch of each warp, then the outputs.
struct FloatMemory {
  static constexpr int kMostWarps = 8;
  static constexpr int kSums = kMostWarps * kTileSums * 4;
  static constexpr int kBytes = kSums + kTileSums * 4;
};

// Chains of a stretch for each row. Lane 16p + f has feature f and chains p and p + 2, so that the weights of
// two inputs lie side by side.
struct StretchChains {
  static constexpr int kOfLane = kChains / 2;
  Floats of[kOfLane][kTileRows];

  // The last of an odd number of inputs goes to the lower lanes.
  SIMT void add_last(int chain, int row, Floats product) {
    SIMT_UNROLL
    for (int c = 0; c < kOfLane; ++c) {
      if (c == chain) of[c][row] = select(lane_id() < Ints(kWarp / 2), product, of[c][row]);
    }
  }
  // Lane 16p + f gets the sum of row 2i + p.
  SIMT Floats sum(int i) const {
    Floats rows[2];
    SIMT_UNROLL
    for (int p = 0; p < 2; ++p) {
      const Floats pairs = add_rn(of[0][2 * i + p], of[1][2 * i + p]);
      rows[p] = add_rn(pairs, shuffle_xor(pairs, kWarp / 2));
    }
    return select(lane_id() < Ints(kWarp / 2), rows[0], rows[1]);
  }
};

// The sums of a stretch: lane 16p + f has feature f and rows 2i + p.
template <typename Numbers>
SIMT_PART void add_stretch(const FloatProductArgs<Numbers>& args, int panel, int first_row, int begin,
                           Floats (&sums)[kRowPairs]) {
  const auto weights = args.weights.from((static_cast<int64_t>(panel) * args.k + begin) * kPanelFeatures);
  const auto x = args.x.from(static_cast<int64_t>(first_row) * args.k + begin);
  constexpr int kStretch = Numbers::kStretch;
  const int inputs = begin + kStretch < args.k ? kStretch : args.k - begin, rows = args.rows - first_row;
  StretchChains chains;
  SIMT_UNROLL
  for (int i = 0; i < 2 * kTileRows; ++i) chains.of[i / kTileRows][i % kTileRows] = Floats(0.0F);
  for (int first = 0; first + 1 < inputs; first += kChains) {
    SIMT_UNROLL
    for (int chain = 0; chain < 2; ++chain) {
      const int input = first + 2 * chain;
      if (input + 1 >= inputs) break;
      const Floats weight = Numbers::load(weights, input * kPanelFeatures, kWarp);
      SIMT_UNROLL
      for (int row = 0; row < kTileRows; ++row) {
        if (row >= rows) break;
        const Floats numbers = x.load_halves(static_cast<int64_t>(row) * args.k + input);
        chains.of[chain][row] = fma_rn(numbers, weight, chains.of[chain][row]);
      }
    }
  }
  if (inputs % 2 != 0) {
    const Floats weight = Numbers::load(weights, (inputs - 1) * kPanelFeatures, kPanelFeatures);
    SIMT_UNROLL
    for (int row = 0; row < kTileRows; ++row) {
      if (row >= rows) break;
      const Floats number(x.load_one(static_cast<int64_t>(row) * args.k + inputs - 1));
      const int chain = inputs / 2 % 2;
      chains.add_last(chain, row, fma_rn(number, weight, chain == 0 ? chains.of[0][row] : chains.of[1][row]));
    }
  }
  SIMT_UNROLL
  for (int i = 0; i < kRowPairs; ++i) sums[i] = chains.sum(i);
}

// The sum so far and the sum of a stretch, for one output of each lane.
template <typename Numbers>
SIMT Floats add_sum(const FloatProductArgs<Numbers>& args, int panel, int stretch, Floats y, Floats sum) {
  if (args.scales.is_null()) return add_rn(y, sum);
  const int64_t of_panel = args.k / Numbers::kStretch;
  const auto scales = args.scales.from((panel * of_panel + stretch) * kPanelFeatures);
  return fma_rn(sum, scales.load(lane_id() & Ints(kPanelFeatures - 1)), y);
}

// A block takes a panel and eight rows. Its warps take stretches in turn, and a lane for each output adds
// them in order.
template <typename Numbers>
SIMT void float_rows(const Block& block, const FloatProductArgs<Numbers>& args) {
  constexpr int kStretch = Numbers::kStretch;
  const int panels = (args.n + kPanelFeatures - 1) / kPanelFeatures;
  const int panel = block.index() % panels, first_row = block.index() / panels * kTileRows;
  block.wait_for_previous();
  const Shared<float> shared(block, 0, FloatMemory::kSums / 4);
  const Shared<float> outputs(block, FloatMemory::kSums, kTileSums);
  const Ints lane = lane_id();
  for (int begin = 0; begin < args.k; begin += block.warps() * kStretch) {
    const int own = begin + block.warp() * kStretch;
    if (own < args.k) {
      Floats sums[kRowPairs];
      add_stretch<Numbers>(args, panel, first_row, own, sums);
      SIMT_UNROLL
      for (int i = 0; i < kRowPairs; ++i)
        shared.put(lane + Ints(block.warp() * kTileSums + i * kWarp), sums[i]);
    }
    block.sync();
    for (int part = block.warp(); part < kRowPairs; part += block.warps()) {
      const Ints place = lane + Ints(part * kWarp);
      Floats y(0.0F);
      if (begin > 0) y = outputs.get(place);
      for (int warp = 0; warp < block.warps() && begin + warp * kStretch < args.k; ++warp)
        y = add_sum(args, panel, begin / kStretch + warp, y, shared.get(place + Ints(warp * kTileSums)));
      outputs.put(place, y);
      const Ints row = (place >> Ints(4)) + Ints(first_row);
      const Ints feature = (place & Ints(15)) + Ints(panel * kPanelFeatures);
      const Bools is_last(begin + block.warps() * kStretch >= args.k);
      args.y.store_if(is_last && row < Ints(args.rows) && feature < Ints(args.n),
                      row * Ints(args.y_stride) + feature, y);
    }
    block.sync();
  }
}

}  // namespace outrider::simt
