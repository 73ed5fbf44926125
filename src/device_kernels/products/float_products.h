// SPDX-License-Identifier: Apache-2.0
// Products with plain numbers in the order of kernels/simd/panel_linear.h: inputs are cut into stretches of
// 256, of which each is added up in kChains chains; stretches are added in order.
#pragma once

#include "device_kernels/products/group_codes.h"

namespace outrider::simt {

struct F32Weights {
  using Stored = float;
  SIMT static Floats load(const Weights<float>& weights, Ints i) { return weights.load(i); }
};
struct F16Weights {
  using Stored = uint16_t;
  SIMT static Floats load(const Weights<uint16_t>& weights, Ints i) { return from_half(weights.load(i)); }
};
struct Bf16Weights {
  using Stored = uint16_t;
  SIMT static Floats load(const Weights<uint16_t>& weights, Ints i) {
    return from_bits(weights.load(i) << Ints(16));
  }
};

template <typename Numbers>
struct FloatProductArgs {
  Weights<typename Numbers::Stored> weights;  // [panel][k][16]
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

inline constexpr int kStretch = 256;
inline constexpr int kChains = 4;
inline constexpr int kRowPairs = kTileRows / 2;

// Shared memory: the sums of a stretch of each warp, then the outputs.
struct FloatMemory {
  static constexpr int kMostWarps = 8;
  static constexpr int kSums = kMostWarps * kTileSums * 4;
  static constexpr int kBytes = kSums + kTileSums * 4;
};

// The sums of a stretch: lane 16p + f has feature f and rows 2i + p.
template <typename Numbers>
SIMT_PART void add_stretch(const FloatProductArgs<Numbers>& args, int panel, int first_row, int begin,
                           Floats (&sums)[kRowPairs]) {
  const Ints lane = lane_id();
  const auto weights = args.weights.from((static_cast<int64_t>(panel) * args.k + begin) * kPanelFeatures);
  const auto x = args.x.from(static_cast<int64_t>(first_row) * args.k + begin);
  const int inputs = begin + kStretch < args.k ? kStretch : args.k - begin;
  Floats chains[kChains][kRowPairs];
  SIMT_UNROLL
  for (int i = 0; i < kChains * kRowPairs; ++i) chains[i / kRowPairs][i % kRowPairs] = Floats(0.0F);
  for (int first = 0; first < inputs; first += kChains) {
    SIMT_UNROLL
    for (int chain = 0; chain < kChains; ++chain) {
      if (first + chain >= inputs) break;
      const int input = first + chain;
      const Floats weight = Numbers::load(weights, (lane & Ints(15)) + Ints(input * kPanelFeatures));
      SIMT_UNROLL
      for (int i = 0; i < kRowPairs; ++i) {
        const Ints row = (lane >> Ints(4)) + Ints(2 * i);
        const Floats number =
            x.load_if(row < Ints(args.rows - first_row), row * Ints(args.k) + Ints(input), 0.0F);
        chains[chain][i] = fma_rn(number, weight, chains[chain][i]);
      }
    }
  }
  SIMT_UNROLL
  for (int i = 0; i < kRowPairs; ++i) {
    SIMT_UNROLL
    for (int apart = kChains / 2; apart > 0; apart /= 2) {
      SIMT_UNROLL
      for (int chain = 0; chain < apart; ++chain)
        chains[chain][i] = add_rn(chains[chain][i], chains[chain + apart][i]);
    }
    sums[i] = chains[0][i];
  }
}

// A block takes a panel and eight rows. Its warps take stretches in turn, and a lane for each output adds
// them in order.
template <typename Numbers>
SIMT void float_rows(const Block& block, const FloatProductArgs<Numbers>& args) {
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
        y = add_rn(y, shared.get(place + Ints(warp * kTileSums)));
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
