// SPDX-License-Identifier: Apache-2.0
// Products on bf16 tiles: weights are the left operand, 16 features by 32 inputs, so that a row of a tile
// shares its scales. Inputs rounded to bf16 are the right one, a column per row of the batch.
//
// The sum of one output is one chain over the inputs, a tile's depth at a time, kept exactly in f32 when it
// leaves the registers. Its bits do not depend on the number of rows. Unnamed namespace on purpose, see
// isa_ops.h.
#pragma once

#include "kernels/amx/tile_weights.h"

namespace outrider {
namespace {

// Tile registers: 0-3 sums of (tile of the panel, row tile), 4-5 weights, 6-7 inputs.
constexpr int kSumTiles = 4;
constexpr int64_t kTileSums = kTileRows * 16;  // numbers of a stored tile of sums
// Decoded blocks that fit the first-level cache beside sums and tables.
constexpr int64_t kBlocksOfStretch = 2;

TileConfig config_for(int64_t columns) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    const bool weights = tile == 4 || tile == 5;
    config.rows[tile] = kTileRows;
    config.row_bytes[tile] = static_cast<uint16_t>(weights ? kTileRowBytes : columns * 4);
  }
  return config;
}

struct Chunk {
  const LinearShare& share;
  Range rows;
  ChunkLayout layout;
  const Bf16* inputs;

  int64_t blocks() const { return (layout.steps + kStepsOfBlock - 1) / kStepsOfBlock; }
  int64_t pairs() const { return (layout.row_tiles + 1) / 2; }
};

// Inputs of whole tiles exceed the first-level cache, and a panel uses each once.
template <int kTile>
void load_inputs(const Bf16* inputs, const ChunkLayout& layout) {
  layout.columns == kTileRows ? stream_tile<kTile>(inputs) : load_tile<kTile>(inputs, layout.columns * 4);
}

// One step of a panel against kTiles row tiles.
template <int kTiles>
void multiply_step(const Bf16* weights, const Bf16* inputs, const ChunkLayout& layout) {
  load_tile<4>(weights);
  load_inputs<6>(inputs, layout);
  multiply_tiles<0, 4, 6>();
  if constexpr (kTiles == 2) {
    load_inputs<7>(inputs + layout.tile_numbers(), layout);
    multiply_tiles<1, 4, 7>();
  }
  load_tile<5>(weights + kTileNumbers);
  multiply_tiles<2, 5, 6>();
  if constexpr (kTiles == 2) multiply_tiles<3, 5, 7>();
}

void zero_sums() {
  zero_tile<0>();
  zero_tile<1>();
  zero_tile<2>();
  zero_tile<3>();
}

template <int kTiles>
void load_sums(const float* sums) {
  load_tile<0>(sums);
  if constexpr (kTiles == 2) load_tile<1>(sums + kTileSums);
  load_tile<2>(sums + 2 * kTileSums);
  if constexpr (kTiles == 2) load_tile<3>(sums + 3 * kTileSums);
}

template <int kTiles>
void store_sums(float* sums) {
  store_tile<0>(sums);
  if constexpr (kTiles == 2) store_tile<1>(sums + kTileSums);
  store_tile<2>(sums + 2 * kTileSums);
  if constexpr (kTiles == 2) store_tile<3>(sums + 3 * kTileSums);
}

// Prefetches the weights of a step of a panel, kTilePrefetch bytes ahead.
void fetch_ahead(const Bf16* tiles) {
  const auto* ahead = reinterpret_cast<const std::byte*>(tiles) + kTilePrefetch;
  for (int64_t line = 0; line < 2 * kTileNumbers * 2; line += 64) __builtin_prefetch(ahead + line);
}

// Writes sums [pair][tile of the panel, row tile][feature][row], times the unit of the weights, to y.
void store_outputs(const Chunk& chunk, int64_t feature, float unit, const float* sums) {
  const LinearShare& share = chunk.share;
  const auto mask_of = [](int64_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xFFFF : count <= 0 ? 0 : (1U << count) - 1);
  };
  for (int64_t tile = 0; tile < 2 * chunk.layout.row_tiles; ++tile) {
    const int64_t row_tile = tile / 2;
    const int64_t half = tile % 2;
    const int64_t first = feature + half * 16;
    const float* from = sums + (row_tile / 2 * kSumTiles + half * 2 + row_tile % 2) * kTileSums;
    __m512i outputs[16];
    for (int i = 0; i < 16; ++i) outputs[i] = _mm512_load_si512(from + i * 16);
    transpose(outputs);
    const int64_t row = chunk.rows.begin + row_tile * kTileRows;
    for (int64_t r = 0; r < kTileRows && row + r < chunk.rows.end; ++r) {
      _mm512_mask_storeu_ps(share.y + (row + r) * share.n + first, mask_of(share.n - first),
                            _mm512_mul_ps((__m512)outputs[r], _mm512_set1_ps(unit)));
    }
  }
}

// Stored tiles: sums of a pair of row tiles stay in registers over all inputs; a second pair finds the
// panel's weights in the second-level cache.
template <int kTiles>
void multiply_stored(const Chunk& chunk, const StoredTiles& weights, int64_t pair, float* sums) {
  zero_sums();
  for (int64_t block = 0; block < chunk.blocks(); ++block) {
    const Bf16* inputs = chunk.inputs + chunk.layout.offset(block, pair);
    const Bf16* tiles = weights.block(block);
    for (int64_t step = 0; step < chunk.layout.steps_in(block); ++step, tiles += 2 * kTileNumbers) {
      if (pair == 0) fetch_ahead(tiles);
      multiply_step<kTiles>(tiles, inputs, chunk.layout);
      inputs += kTiles * chunk.layout.tile_numbers();
    }
  }
  store_sums<kTiles>(sums);
}

void stored_panel(const Chunk& chunk, int64_t feature) {
  alignas(64) float sums[kChunkRows / 32 * kSumTiles * kTileSums];
  const StoredTiles weights(chunk.share, feature);
  for (int64_t pair = 0; pair < chunk.pairs(); ++pair) {
    float* sums_of_pair = sums + pair * kSumTiles * kTileSums;
    if (chunk.layout.tiles_in_pair(pair) == 2) {
      multiply_stored<2>(chunk, weights, pair, sums_of_pair);
    } else {
      multiply_stored<1>(chunk, weights, pair, sums_of_pair);
    }
  }
  store_outputs(chunk, feature, weights.unit, sums);
}

// Adds a decoded block to the sums in registers; between its steps, decodes a quarter each of the next block
// to `next`.
template <int kTiles, typename Weights>
void multiply_block(const Chunk& chunk, Weights& weights, int64_t block, int64_t pair, const Bf16* tiles,
                    Bf16* next) {
  const Bf16* inputs = chunk.inputs + chunk.layout.offset(block, pair);
  for (int64_t step = 0; step < chunk.layout.steps_in(block); ++step, tiles += 2 * kTileNumbers) {
    if (next != nullptr) weights.decode(block + 1, static_cast<int>(step), next);
    multiply_step<kTiles>(tiles, inputs, chunk.layout);
    inputs += kTiles * chunk.layout.tile_numbers();
  }
}

// Multiplies the decoded blocks of a stretch by a pair of row tiles; sums of more than one pair wait in
// memory between stretches. The first pair decodes blocks of the stretch, the last one the first block of the
// next stretch, in a place that it has already read.
template <int kTiles, typename Weights>
void multiply_stretch(const Chunk& chunk, Weights& weights, Range blocks, int64_t pair,
                      Bf16 (&decoded)[kBlocksOfStretch][kBlockNumbers], float* sums) {
  const bool stay = chunk.pairs() == 1;
  if (blocks.begin == 0) {
    zero_sums();
  } else if (!stay) {
    load_sums<kTiles>(sums);
  }
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const int64_t decoding_pair = block + 1 < blocks.end ? 0 : chunk.pairs() - 1;
    const bool decodes = pair == decoding_pair && block + 1 < chunk.blocks();
    Bf16* next = decodes ? decoded[(block + 1) % kBlocksOfStretch] : nullptr;
    multiply_block<kTiles>(chunk, weights, block, pair, decoded[block % kBlocksOfStretch], next);
  }
  if (!stay || blocks.end == chunk.blocks()) store_sums<kTiles>(sums);
}

template <typename Weights>
void decoded_panel(const Chunk& chunk, int64_t feature) {
  alignas(64) Bf16 decoded[kBlocksOfStretch][kBlockNumbers];
  alignas(64) float sums[kChunkRows / 32 * kSumTiles * kTileSums];
  Weights weights(chunk.share, feature);
  for (int quarter = 0; quarter < kQuarters; ++quarter) weights.decode(0, quarter, decoded[0]);
  for (int64_t block = 0; block < chunk.blocks(); block += kBlocksOfStretch) {
    const int64_t end = block + kBlocksOfStretch;
    const Range stretch = {block, end < chunk.blocks() ? end : chunk.blocks()};
    for (int64_t pair = 0; pair < chunk.pairs(); ++pair) {
      float* sums_of_pair = sums + pair * kSumTiles * kTileSums;
      if (chunk.layout.tiles_in_pair(pair) == 2) {
        multiply_stretch<2>(chunk, weights, stretch, pair, decoded, sums_of_pair);
      } else {
        multiply_stretch<1>(chunk, weights, stretch, pair, decoded, sums_of_pair);
      }
    }
  }
  store_outputs(chunk, feature, weights.unit, sums);
}

template <void (*panel)(const Chunk&, int64_t)>
void multiply_chunk(const Chunk& chunk) {
  const Range features = chunk.share.features;
  for (int64_t feature = features.begin; feature < features.end; feature += kTileFeatures)
    panel(chunk, feature);
}

void multiply_nibbles(const Chunk& chunk) {
  const bool narrow = chunk.share.code_group == 16;
  if (chunk.share.has_min) {
    return narrow ? multiply_chunk<decoded_panel<MinNibbleTiles<16>>>(chunk)
                  : multiply_chunk<decoded_panel<MinNibbleTiles<32>>>(chunk);
  }
  return narrow ? multiply_chunk<decoded_panel<NibbleTiles<16>>>(chunk)
                : multiply_chunk<decoded_panel<NibbleTiles<32>>>(chunk);
}

void multiply_chunk(const Chunk& chunk) {
  const LinearShare& share = chunk.share;
  switch (share.layout) {
    case WeightLayout::kTiles:
      return multiply_chunk<stored_panel>(chunk);
    case WeightLayout::kTileNibbles:
      return multiply_nibbles(chunk);
    default:
      return share.has_min ? multiply_chunk<decoded_panel<ByteTiles<32, true>>>(chunk)
                           : multiply_chunk<decoded_panel<ByteTiles<16, false>>>(chunk);
  }
}

void tile_linear(const LinearShare& share) {
  const int64_t padded_k = (share.k + kTileDepth - 1) / kTileDepth * kTileDepth;
  for (int64_t row = 0; row < share.rows; row += kChunkRows) {
    const Range rows = {row, row + kChunkRows < share.rows ? row + kChunkRows : share.rows};
    const Chunk chunk = {share, rows, ChunkLayout(rows.end - rows.begin, share.k),
                         reinterpret_cast<const Bf16*>(share.packed_x) + row * padded_k};
    load_tile_config(config_for(chunk.layout.columns));
    multiply_chunk(chunk);
  }
  release_tiles();
}

}  // namespace
}  // namespace outrider
