// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit inputs with weights of grouped codes. Sums of a group are integers, exact in any order;
// groups are added in f32, in order. So few rows and many rows have equal bits, which are the bits of the
// CPU's tables.
#pragma once

#include "device_kernels/products/group_codes.h"

namespace outrider::simt {

// Chunks between two barriers of few_rows().
inline constexpr int kStageChunks = 16;

// Shared memory of few_rows(): the ring of each warp, the integer sums of a stage, and the outputs.
struct FewRowsMemory {
  static constexpr int kRings = CodeRing::kMostBytes;
  static constexpr int kSums = kStageChunks * 2 * kTileSums * 4;
  static constexpr int kOutputs = kTileSums * 4;
  static constexpr int kBytes = kRings + kSums + kOutputs;
};

// Puts the sums of a chunk as mma_s8() gives them where the lanes find them that add up outputs.
template <typename Codes>
SIMT_PART void put_sums(const Shared<int>& shared, int group, const Ints (&sums)[Codes::kGroupsOfChunk][4]) {
  for (int s = 0; s < Codes::kGroupsOfChunk; ++s) {
    for (int i = 0; i < 4; ++i) shared.put_from((group + s) * kTileSums + i * kWarp, sums[s][i]);
  }
}

// Where put_sums() puts the sum of a feature and of row 2 * pair or 2 * pair + 1 of the tile; is_odd is 0
// or 1.
SIMT Ints place_of_sum(Ints feature, int pair, Ints is_odd) {
  const Ints register_of = is_odd + (feature >> Ints(3)) * Ints(2);
  return register_of * Ints(kWarp) + (feature & Ints(7)) * Ints(4) + Ints(pair);
}

// Adds groups [begin, end) to the outputs; lane by lane, a warp takes 32 of them at once, which are two rows.
template <typename Codes>
SIMT_PART void add_stage(const Block& block, const GroupedProductArgs& args, int panel, int first_row,
                         int begin, int end) {
  const Shared<int> sums(block, FewRowsMemory::kRings, FewRowsMemory::kSums / 4);
  const Shared<float> outputs(block, FewRowsMemory::kRings + FewRowsMemory::kSums, kTileSums);
  const Ints feature = lane_id() & Ints(kPanelFeatures - 1), is_odd = lane_id() >> Ints(4);
  for (int pair = block.warp(); pair < kTileRows / 2; pair += block.warps()) {
    const int row = first_row + 2 * pair;
    if (row >= args.x.rows) break;
    const Ints place = place_of_sum(feature, pair, is_odd);
    Floats y(0.0F);
    if (begin > 0) y = outputs.get_from(pair * kWarp);
    for (int group = begin; group < end; ++group) {
      y = add_group<Codes>(y, sums.get(place + Ints((group - begin) * kTileSums)),
                           feature_scales<Codes>(args.weights, panel, group, SideBySide{row}),
                           row_scales<Codes>(args.x, group, SideBySide{row}));
    }
    outputs.put_from(pair * kWarp, y);
    if (end * Codes::kGroup == args.weights.k) {
      const Ints j = feature + Ints(panel * kPanelFeatures), row_of = is_odd + Ints(row);
      args.y.store_if(row_of < Ints(args.x.rows) && j < Ints(args.weights.n),
                      row_of * Ints(args.y_stride) + j, y);
    }
  }
}

// A block takes a panel and eight rows. Its warps take tiles of codes in turn, and find their integer sums;
// then a lane for each output adds them up in order. Bits do not depend on the number of warps.
template <typename Codes>
SIMT void few_rows(const Block& block, const GroupedProductArgs& args) {
  const int panels = (args.weights.n + kPanelFeatures - 1) / kPanelFeatures;
  const int panel = block.index() % panels, first_row = block.index() / panels * kTileRows;
  const int chunks = args.weights.k / kChunk;
  CodeRing ring(block, args.weights.codes, panel, (chunks + Codes::kChunksOfTile - 1) / Codes::kChunksOfTile);
  block.wait_for_previous();
  const Shared<int> shared(block, FewRowsMemory::kRings, FewRowsMemory::kSums / 4);
  int tile = block.warp();
  for (int begin = 0; begin < chunks; begin += kStageChunks) {
    const int end = begin + kStageChunks < chunks ? begin + kStageChunks : chunks;
    for (; tile * Codes::kChunksOfTile < end; tile += block.warps()) {
      Ints words[4];
      ring.take(words);
      for (int c = 0; c < Codes::kChunksOfTile; ++c) {
        const int chunk = tile * Codes::kChunksOfTile + c;
        if (chunk >= end) break;
        Ints a[4], sums[Codes::kGroupsOfChunk][4];
        unpack_codes<Codes>(args.weights, words, c, a);
        chunk_sums<Codes>(a, args.x, chunk, first_row, sums);
        put_sums<Codes>(shared, (chunk - begin) * Codes::kGroupsOfChunk, sums);
      }
    }
    block.sync();
    add_stage<Codes>(block, args, panel, first_row, begin * Codes::kGroupsOfChunk,
                     end * Codes::kGroupsOfChunk);
    block.sync();
  }
}

// Rows that a warp of many_rows() keeps in registers.
inline constexpr int kManyRows = 32;
inline constexpr int kManyTiles = kManyRows / kTileRows;

template <typename Codes>
SIMT_PART void add_chunk(const GroupedProductArgs& args, int panel, int chunk, int first_row,
                         const Ints (&a)[4], Floats (&y)[kManyTiles][4]) {
  const Ints lane = lane_id(), g = lane >> Ints(2), t = lane & Ints(3);
  FeatureScales of_features[Codes::kGroupsOfChunk][2];
  SIMT_UNROLL
  for (int i = 0; i < Codes::kGroupsOfChunk * 2; ++i) {
    of_features[i / 2][i % 2] = feature_scales<Codes>(
        args.weights, panel, chunk * Codes::kGroupsOfChunk + i / 2, Scattered{g + Ints(i % 2 * 8), Ints(0)});
  }
  SIMT_UNROLL
  for (int tile = 0; tile < kManyTiles; ++tile) {
    const int row = first_row + tile * kTileRows;
    if (row >= args.x.padded) break;
    Ints sums[Codes::kGroupsOfChunk][4];
    chunk_sums<Codes>(a, args.x, chunk, row, sums);
    SIMT_UNROLL
    for (int s = 0; s < Codes::kGroupsOfChunk; ++s) {
      SIMT_UNROLL
      for (int parity = 0; parity < 2; ++parity) {
        const RowScales of_row = row_scales<Codes>(args.x, chunk * Codes::kGroupsOfChunk + s,
                                                   Scattered{Ints(0), t * Ints(2) + Ints(row + parity)});
        SIMT_UNROLL
        for (int f = 0; f < 2; ++f) {
          const int i = f * 2 + parity;
          y[tile][i] = add_group<Codes>(y[tile][i], sums[s][i], of_features[s][f], of_row);
        }
      }
    }
  }
}

// A warp takes a panel and 32 rows, and adds up its outputs in registers.
template <typename Codes>
SIMT void many_rows(const Block& block, const GroupedProductArgs& args) {
  const int panels = (args.weights.n + kPanelFeatures - 1) / kPanelFeatures;
  const int item = block.index() * block.warps() + block.warp();
  const int panel = item % panels, first_row = item / panels * kManyRows;
  if (first_row >= args.x.padded) return;
  block.wait_for_previous();
  const int chunks = args.weights.k / kChunk;
  const int tiles = (chunks + Codes::kChunksOfTile - 1) / Codes::kChunksOfTile;
  const auto codes = args.weights.codes.from(static_cast<int64_t>(panel) * tiles * kTileWords);
  const Ints lane = lane_id(), g = lane >> Ints(2), t = lane & Ints(3);
  Floats y[kManyTiles][4];
  SIMT_UNROLL
  for (int i = 0; i < kManyTiles * 4; ++i) y[i / 4][i % 4] = Floats(0.0F);
  for (int tile = 0; tile < tiles; ++tile) {
    Ints words[4], a[4];
    codes.load4(lane * Ints(4) + Ints(tile * kTileWords), words);
    for (int c = 0; c < Codes::kChunksOfTile && tile * Codes::kChunksOfTile + c < chunks; ++c) {
      unpack_codes<Codes>(args.weights, words, c, a);
      add_chunk<Codes>(args, panel, tile * Codes::kChunksOfTile + c, first_row, a, y);
    }
  }
  SIMT_UNROLL
  for (int i = 0; i < kManyTiles * 4; ++i) {
    const Ints row = t * Ints(2) + Ints(first_row + i / 4 * kTileRows + i % 2);
    const Ints j = g + Ints(i % 4 / 2 * 8 + panel * kPanelFeatures);
    args.y.store_if(row < Ints(args.x.rows) && j < Ints(args.weights.n), row * Ints(args.y_stride) + j,
                    y[i / 4][i % 4]);
  }
}

}  // namespace outrider::simt
