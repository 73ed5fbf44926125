// SPDX-License-Identifier: Apache-2.0
// Products on tiles: activations rounded to bf16 are the left operand, one strip of 16 output features the
// right one, so that results leave in row order and a single row costs single-row tiles. Weights other than
// BF16 are decoded to bf16 tiles once per chunk of rows.
//
// The sum of one output is one chain over the inputs in steps of kTileDepth, kept exactly in f32 between
// stretches: its bits do not depend on the number of rows. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/packing.h"
#include "kernels/simd/strip_linear.h"

namespace outrider {
namespace {

using Bf16 = uint16_t;

constexpr int64_t kChunkRows = 128;  // rows that share one pass over the weights
constexpr int64_t kStretch = 512;    // inputs decoded at a time; a multiple of every block and of kTileDepth
constexpr int64_t kPackedNumbers = 65536;  // of packed activations on the stack: 128 KiB
constexpr int64_t kTileNumbers = kTileRows * kTileDepth;
constexpr int kRowTiles = 4;  // accumulators in registers

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Activations of a chunk as bf16 tiles: [row tile][step of kTileDepth inputs][kTileRows][kTileDepth].
struct PackedRows {
  alignas(64) Bf16 numbers[kPackedNumbers];
  int64_t row_tiles;
  int64_t steps;

  const Bf16* tile(int64_t row_tile, int64_t step) const {
    return numbers + (row_tile * steps + step) * kTileNumbers;
  }
};

// Missing rows and inputs beyond k become zero.
void pack_rows_of_chunk(const LinearShare& share, Range rows, Range inputs, PackedRows& packed) {
  packed.row_tiles = round_up(rows.end - rows.begin, kTileRows) / kTileRows;
  packed.steps = round_up(inputs.end - inputs.begin, kTileDepth) / kTileDepth;
  Bf16* to = packed.numbers;
  for (int64_t tile = 0; tile < packed.row_tiles; ++tile) {
    for (int64_t step = 0; step < packed.steps; ++step) {
      const int64_t begin = inputs.begin + step * kTileDepth;
      const int64_t left = inputs.end - begin;
      const int64_t low = left < 16 ? left : 16;
      const int64_t high = left < 16 ? 0 : left < 32 ? left - 16 : 16;
      for (int64_t row = rows.begin + tile * kTileRows; row < rows.begin + (tile + 1) * kTileRows; ++row) {
        __m512bh pair = (__m512bh)_mm512_setzero_si512();
        if (row < rows.end) {
          const float* x = share.x + row * share.k + begin;
          pair = _mm512_cvtne2ps_pbh(Avx512::load_first(high > 0 ? x + 16 : x, high),
                                     Avx512::load_first(x, low));
        }
        _mm512_store_si512(to, (__m512i)pair);
        to += kTileDepth;
      }
    }
  }
}

// [inputs, 16] f32 to right-hand tiles: pairs of inputs side by side, zeros up to whole tiles.
void pair_inputs(const float* decoded, int64_t inputs, Bf16* tiles) {
  const __m512i interleave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                              23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (int64_t i = 0; i < round_up(inputs, kTileDepth); i += 2) {
    const __m512 even = i < inputs ? _mm512_load_ps(decoded + i * 16) : _mm512_setzero_ps();
    const __m512 odd = i + 1 < inputs ? _mm512_load_ps(decoded + (i + 1) * 16) : _mm512_setzero_ps();
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
    _mm512_store_si512(tiles + i * 16, _mm512_permutexvar_epi16(interleave, halves));
  }
}

// Right-hand tiles of a stretch: those stored for BF16, else decoded to `scratch`.
const Bf16* weight_tiles(const LinearShare& share, int64_t feature, Range inputs, Bf16* scratch) {
  const auto* weights = reinterpret_cast<const uint8_t*>(share.weights);
  if (share.dtype == DType::kBF16) {
    const int64_t padded = round_up(share.k, kTileDepth);
    return reinterpret_cast<const Bf16*>(weights) + feature * padded + inputs.begin * kStripFeatures;
  }
  alignas(64) float decoded[kStretch * kStripFeatures];
  simd::decode_strip<Avx512>(share.dtype, weights + feature * row_bytes(share.dtype, share.k), inputs,
                             decoded);
  pair_inputs(decoded, inputs.end - inputs.begin, scratch);
  return scratch;
}

// Tile registers: 0-3 sums, 4 activations, 5 weights.
template <int kTile>
void load_sums(const float* sums) {
  load_tile<kTile>(sums + kTile * kTileRows * kStripFeatures);
  if constexpr (kTile > 0) load_sums<kTile - 1>(sums);
}

template <int kTile>
void store_sums(float* sums) {
  store_tile<kTile>(sums + kTile * kTileRows * kStripFeatures);
  if constexpr (kTile > 0) store_sums<kTile - 1>(sums);
}

template <int kTile>
void multiply_row_tiles(const Bf16* rows, int64_t row_tile_pitch) {
  load_tile<4>(rows + kTile * row_tile_pitch);
  multiply_tiles<kTile, 4, 5>();
  if constexpr (kTile > 0) multiply_row_tiles<kTile - 1>(rows, row_tile_pitch);
}

struct TileProduct {
  const PackedRows& rows;
  const Bf16* weights;  // tiles of the stretch
  int64_t first_step;
  int64_t steps;
  float* sums;  // [row tile][kTileRows][16]
};

// Adds a stretch to the sums of kCount row tiles.
template <int kCount>
void add_tiles(const TileProduct& product, int64_t row_tile) {
  float* sums = product.sums + row_tile * kTileRows * kStripFeatures;
  const Bf16* rows = product.rows.tile(row_tile, product.first_step);
  load_sums<kCount - 1>(sums);
  for (int64_t step = 0; step < product.steps; ++step) {
    load_tile<5>(product.weights + step * kTileNumbers);
    multiply_row_tiles<kCount - 1>(rows + step * kTileNumbers, product.rows.steps * kTileNumbers);
  }
  store_sums<kCount - 1>(sums);
}

void add_all_row_tiles(const TileProduct& product) {
  int64_t row_tile = 0;
  for (; row_tile + kRowTiles <= product.rows.row_tiles; row_tile += kRowTiles)
    add_tiles<kRowTiles>(product, row_tile);
  switch (product.rows.row_tiles - row_tile) {
    case 3:
      return add_tiles<3>(product, row_tile);
    case 2:
      return add_tiles<2>(product, row_tile);
    case 1:
      return add_tiles<1>(product, row_tile);
    default:
      return;
  }
}

// One strip for one chunk of rows over the packed inputs; y carries the sums from one range of inputs to the
// next.
void strip_product(const LinearShare& share, int64_t feature, Range rows, Range inputs,
                   const PackedRows& packed) {
  alignas(64) float sums[kChunkRows * kStripFeatures];
  alignas(64) Bf16 scratch[kStretch * kStripFeatures];
  const int64_t features = share.n - feature < kStripFeatures ? share.n - feature : kStripFeatures;
  for (int64_t r = 0; r < packed.row_tiles * kTileRows; ++r) {
    const bool carried = inputs.begin > 0 && rows.begin + r < rows.end;
    const float* y = share.y + (rows.begin + r) * share.n + feature;
    Avx512::store(sums + r * kStripFeatures, carried ? Avx512::load_first(y, features) : Avx512::all(0));
  }
  for (int64_t begin = inputs.begin; begin < inputs.end; begin += kStretch) {
    const int64_t end = begin + kStretch < inputs.end ? begin + kStretch : inputs.end;
    const int64_t steps = round_up(end - begin, kTileDepth) / kTileDepth;
    const Bf16* tiles = weight_tiles(share, feature, {begin, end}, scratch);
    add_all_row_tiles({packed, tiles, (begin - inputs.begin) / kTileDepth, steps, sums});
  }
  simd::store_strip<Avx512>(share, feature, rows, sums);
}

TileConfig config_for(int64_t rows) {
  constexpr int kTiles = 6;
  constexpr int kWeights = 5;
  TileConfig config;
  for (int tile = 0; tile < kTiles; ++tile) {
    config.row_bytes[tile] = kTileRowBytes;
    config.rows[tile] = static_cast<uint8_t>(tile == kWeights || rows > kTileRows ? kTileRows : rows);
  }
  return config;
}

void tile_linear(const LinearShare& share) {
  PackedRows packed;
  for (int64_t row = 0; row < share.rows; row += kChunkRows) {
    const Range rows = {row, row + kChunkRows < share.rows ? row + kChunkRows : share.rows};
    const int64_t padded_rows = round_up(rows.end - rows.begin, kTileRows);
    const int64_t depth = kPackedNumbers / padded_rows / kStretch * kStretch;
    load_tile_config(config_for(rows.end - rows.begin));
    for (int64_t begin = 0; begin < share.k; begin += depth) {
      const Range inputs = {begin, begin + depth < share.k ? begin + depth : share.k};
      pack_rows_of_chunk(share, rows, inputs, packed);
      for (int64_t feature = share.features.begin; feature < share.features.end; feature += kStripFeatures) {
        strip_product(share, feature, rows, inputs, packed);
      }
    }
  }
  release_tiles();
}

}  // namespace
}  // namespace outrider
