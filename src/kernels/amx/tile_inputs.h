// SPDX-License-Identifier: Apache-2.0
// Inputs rounded to bf16, as right-hand tiles. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/transpose.h"
#include "kernels/isa_ops.h"

namespace outrider {
namespace {

using Bf16 = uint16_t;

constexpr int64_t kStepsOfBlock = kCodeBlock / kTileDepth;

// The places of the tiles of one chunk of rows.
struct ChunkLayout {
  int64_t row_tiles;
  int64_t steps;
  int64_t columns;  // rows in a tile

  ChunkLayout(int64_t rows, int64_t k)
      : row_tiles((rows + kTileRows - 1) / kTileRows),
        steps((k + kTileDepth - 1) / kTileDepth),
        columns(rows < kTileRows ? rows : kTileRows) {}

  int64_t tile_numbers() const { return kTileDepth * columns; }
  int64_t steps_in(int64_t block) const {
    const int64_t left = steps - block * kStepsOfBlock;
    return left < kStepsOfBlock ? left : kStepsOfBlock;
  }
  int64_t tiles_in_pair(int64_t pair) const { return row_tiles - 2 * pair < 2 ? 1 : 2; }
  // The result counts numbers. The tiles of a block and pair follow one another: step after step, the pair's
  // tiles side by side.
  int64_t offset(int64_t block, int64_t pair) const {
    return (block * kStepsOfBlock * row_tiles + 2 * pair * steps_in(block)) * tile_numbers();
  }
};

// Rows beyond the last and inputs beyond k become zero.
void pack_tile(const InputShare& share, Range rows, int64_t begin, int64_t columns, Bf16* to) {
  const int64_t left = share.k - begin;
  const auto mask_of = [](int64_t count) {
    return static_cast<__mmask16>(count >= 16 ? 0xFFFF : count <= 0 ? 0 : (1U << count) - 1);
  };
  __m512i pairs[kTileRows];
  for (int64_t r = 0; r < kTileRows; ++r) {
    pairs[r] = _mm512_setzero_si512();
    if (rows.begin + r >= rows.end) continue;
    const float* x = share.x + (rows.begin + r) * share.k + begin;
    const __m512 low = _mm512_maskz_loadu_ps(mask_of(left), x);
    const __m512 high = _mm512_maskz_loadu_ps(mask_of(left - 16), x + 16);
    pairs[r] = (__m512i)_mm512_cvtne2ps_pbh(high, low);
  }
  if (columns == 1) {
    _mm512_storeu_si512(to, pairs[0]);
    return;
  }
  transpose(pairs);
  for (const __m512i pair : pairs) {
    _mm512_mask_storeu_epi32(to, mask_of(columns), pair);
    to += 2 * columns;
  }
}

// Items: blocks of kCodeBlock inputs of a row tile: (row tile of all rows, block), flattened.
void pack_tile_inputs(const InputShare& share) {
  const int64_t blocks = (share.k + kCodeBlock - 1) / kCodeBlock;
  const int64_t padded_k = (share.k + kTileDepth - 1) / kTileDepth * kTileDepth;
  for (int64_t item = share.items.begin; item < share.items.end; ++item) {
    const int64_t row = item / blocks * kTileRows;
    const int64_t block = item % blocks;
    const int64_t chunk = row / kChunkRows * kChunkRows;
    const int64_t chunk_end = chunk + kChunkRows < share.rows ? chunk + kChunkRows : share.rows;
    const ChunkLayout layout(chunk_end - chunk, share.k);
    const int64_t tile = (row - chunk) / kTileRows;
    const int64_t together = layout.tiles_in_pair(tile / 2);
    Bf16* to = reinterpret_cast<Bf16*>(share.packed) + chunk * padded_k + layout.offset(block, tile / 2) +
               tile % 2 * layout.tile_numbers();
    for (int64_t s = 0; s < layout.steps_in(block); ++s, to += together * layout.tile_numbers()) {
      pack_tile(share, {row, chunk_end}, block * kCodeBlock + s * kTileDepth, layout.columns, to);
    }
  }
}

}  // namespace
}  // namespace outrider
