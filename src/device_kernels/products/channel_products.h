// SPDX-License-Identifier: Apache-2.0
// Products with 8-bit weights of one scale for each feature, and inputs of one scale for each row. All sums
// are integers, and are scaled at the end.
#pragma once

#include "device_kernels/products/group_codes.h"

namespace outrider::simt {

struct ChannelWeights {
  Weights<int> codes;     // [panel][chunk][lane][4 words], see GroupedWeights
  Weights<float> scales;  // [panel][16]
  int n;
  int k;  // codes beyond it are 0
};

struct ChannelInputs {
  Rows<const int> codes;     // [chunk][padded rows][8 words], see GroupedInputs
  Rows<const float> scales;  // [padded rows]
  int rows;
  int padded;
};

struct ChannelProductArgs {
  ChannelWeights weights;
  ChannelInputs x;
  Rows<float> y;  // [rows, y_stride], the product's outputs first
  int y_stride;
};

struct PackChannelInputsArgs {
  Rows<const float> x;  // [rows, k]
  Rows<int8_t> codes;   // [chunk][padded rows][32]
  Rows<float> scales;
  int rows;
  int padded;
  int k;
};

// A warp takes a row. The largest magnitude becomes 127.
SIMT void pack_channel_inputs(const Block& block, const PackChannelInputsArgs& args) {
  const int row = block.index() * block.warps() + block.warp();
  if (row >= args.padded) return;
  block.wait_for_previous();
  const Ints lane = lane_id();
  const bool is_row = row < args.rows;
  const auto x = args.x.from(is_row ? static_cast<int64_t>(row) * args.k : 0);
  Floats largest(0.0F);
  for (int first = 0; is_row && first < args.k; first += kChunk) {
    const Ints i = lane + Ints(first);
    largest = max_of(largest, abs_of(x.load_if(i < Ints(args.k), i, 0.0F)));
  }
  largest = max_lanes(largest, kWarp);
  const Bools any = largest > Floats(0.0F);
  const Floats inverse =
      select(any, div_rn(Floats(127.0F), select(any, largest, Floats(1.0F))), Floats(0.0F));
  for (int first = 0; first < args.k; first += kChunk) {
    const Ints i = lane + Ints(first);
    const Floats number = x.load_if(Bools(is_row) && i < Ints(args.k), i, 0.0F);
    const Ints code = round_int(max_of(min_of(mul_rn(number, inverse), Floats(127.0F)), Floats(-127.0F)));
    args.codes.from((static_cast<int64_t>(first / kChunk) * args.padded + row) * kChunk)
        .store(places_of_codes(), code);
  }
  args.scales.from(row).store_if(lane == Ints(0), lane, div_rn(largest, Floats(127.0F)));
}

// Shared memory of few_channel_rows(): the rings, and the sums of each warp.
struct ChannelMemory {
  static constexpr int kSums = CodeRing::kMostWarps * kTileSums * 4;
  static constexpr int kBytes = CodeRing::kMostBytes + kSums;
};

// Adds the products of a chunk with the eight rows from `row` on, see mma_s8().
SIMT_PART void add_channel_chunk(const ChannelInputs& x, const Ints (&a)[4], int chunk, int row,
                                 Ints (&sums)[4]) {
  Ints b[2];
  x.codes.from((static_cast<int64_t>(chunk) * x.padded + row) * (kChunk / 4)).load_pairs(0, b);
  mma_s8(sums, a, b);
}

SIMT_PART void store_channel(const ChannelProductArgs& args, Ints row, Ints feature, Ints sum) {
  const Bools in = row < Ints(args.x.rows) && feature < Ints(args.weights.n);
  const Floats scale = mul_rn(args.weights.scales.load(feature), args.x.scales.load(row));
  args.y.store_if(in, row * Ints(args.y_stride) + feature, mul_rn(to_float(sum), scale));
}

// A block takes a panel and eight rows; its warps take chunks in turn.
SIMT void few_channel_rows(const Block& block, const ChannelProductArgs& args) {
  const int panels = (args.weights.n + kPanelFeatures - 1) / kPanelFeatures;
  const int panel = block.index() % panels, first_row = block.index() / panels * kTileRows;
  const int chunks = (args.weights.k + kChunk - 1) / kChunk;
  CodeRing ring(block, args.weights.codes, panel, chunks);
  block.wait_for_previous();
  Ints sums[4] = {Ints(0), Ints(0), Ints(0), Ints(0)};
  for (int chunk = block.warp(); chunk < chunks; chunk += block.warps()) {
    Ints a[4];
    ring.take(a);
    add_channel_chunk(args.x, a, chunk, first_row, sums);
  }
  const Shared<int> shared(block, CodeRing::kMostBytes, ChannelMemory::kSums / 4);
  for (int i = 0; i < 4; ++i) {
    const Ints row = (lane_id() & Ints(3)) * Ints(2) + Ints(i & 1);
    const Ints feature = (lane_id() >> Ints(2)) + Ints((i >> 1) * 8);
    shared.put(row * Ints(kPanelFeatures) + feature + Ints(block.warp() * kTileSums), sums[i]);
  }
  block.sync();
  for (int part = block.warp(); part < kTileSums / kWarp; part += block.warps()) {
    const Ints place = lane_id() + Ints(part * kWarp);
    Ints sum(0);
    for (int warp = 0; warp < block.warps(); ++warp) sum = sum + shared.get(place + Ints(warp * kTileSums));
    store_channel(args, (place >> Ints(4)) + Ints(first_row),
                  (place & Ints(kPanelFeatures - 1)) + Ints(panel * kPanelFeatures), sum);
  }
}

// A warp takes a panel and eight rows.
SIMT void many_channel_rows(const Block& block, const ChannelProductArgs& args) {
  const int panels = (args.weights.n + kPanelFeatures - 1) / kPanelFeatures;
  const int item = block.index() * block.warps() + block.warp();
  const int panel = item % panels, first_row = item / panels * kTileRows;
  if (first_row >= args.x.padded) return;
  block.wait_for_previous();
  const int chunks = (args.weights.k + kChunk - 1) / kChunk;
  const auto codes = args.weights.codes.from(static_cast<int64_t>(panel) * chunks * kTileWords);
  Ints sums[4] = {Ints(0), Ints(0), Ints(0), Ints(0)};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    Ints a[4];
    codes.load4(lane_id() * Ints(4) + Ints(chunk * kTileWords), a);
    add_channel_chunk(args.x, a, chunk, first_row, sums);
  }
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) {
    store_channel(args, (lane_id() & Ints(3)) * Ints(2) + Ints(first_row + (i & 1)),
                  (lane_id() >> Ints(2)) + Ints(panel * kPanelFeatures + (i >> 1) * 8), sums[i]);
  }
}

}  // namespace outrider::simt
