// SPDX-License-Identifier: Apache-2.0
// Tiles of f32 inputs, see InputLayout::kF32Tiles.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

template <typename V>
int64_t float_tiles(int64_t rows) {
  return (rows + kFloatRows - 1) / kFloatRows;
}

// Rows of a tile. The last two divide theirs evenly, since a step over few rows is worth little.
template <typename V>
Range float_tile(int64_t rows, int64_t tile) {
  const int64_t tiles = float_tiles<V>(rows), begin = tile * kFloatRows;
  if (tiles == 1) return {0, rows};
  if (tile + 2 < tiles) return {begin, begin + kFloatRows};
  const int64_t before = (tiles - 2) * kFloatRows, middle = before + (rows - before + 1) / 2;
  return tile + 2 == tiles ? Range{before, middle} : Range{middle, rows};
}

// Four numbers, for any instruction set.
using FourFloats = float __attribute__((vector_size(16)));

// Four inputs of four rows; rows of x are k numbers apart, inputs of the tile `width`.
template <typename V>
void transpose_four(const float* x, int64_t k, float* tile, int64_t width) {
  const auto row = [x, k](int r) {
    FourFloats four;
    __builtin_memcpy(&four, x + r * k, sizeof(four));
    return four;
  };
  const auto put = [tile, width](int i, FourFloats four) {
    __builtin_memcpy(tile + i * width, &four, sizeof(four));
  };
  // Inputs 0 and 1, then 2 and 3, of two rows.
  const FourFloats low02 = __builtin_shufflevector(row(0), row(2), 0, 4, 1, 5);
  const FourFloats high02 = __builtin_shufflevector(row(0), row(2), 2, 6, 3, 7);
  const FourFloats low13 = __builtin_shufflevector(row(1), row(3), 0, 4, 1, 5);
  const FourFloats high13 = __builtin_shufflevector(row(1), row(3), 2, 6, 3, 7);
  put(0, __builtin_shufflevector(low02, low13, 0, 4, 1, 5));
  put(1, __builtin_shufflevector(low02, low13, 2, 6, 3, 7));
  put(2, __builtin_shufflevector(high02, high13, 0, 4, 1, 5));
  put(3, __builtin_shufflevector(high02, high13, 2, 6, 3, 7));
}

// Inputs [begin, end) of `rows` rows, which are k numbers apart, to their places in a tile of `width` rows.
template <typename V>
void pack_rows(const float* x, int64_t k, Range inputs, int64_t rows, float* tile, int64_t width) {
  int64_t i = inputs.begin;
  if (rows == 4) {
    for (; i + 4 <= inputs.end; i += 4) transpose_four<V>(x + i, k, tile + i * width, width);
  }
  for (; i < inputs.end; ++i) {
    for (int64_t r = 0; r < rows; ++r) tile[i * width + r] = x[r * k + i];
  }
}

// Items: blocks of kCodeBlock inputs of a tile: (tile, block), flattened.
template <typename V>
void pack_float_tiles(const InputShare& share) {
  const int64_t blocks = (share.k + kCodeBlock - 1) / kCodeBlock;
  for (int64_t item = share.items.begin; item < share.items.end; ++item) {
    const Range rows = float_tile<V>(share.rows, item / blocks);
    const int64_t width = rows.end - rows.begin, begin = item % blocks * kCodeBlock;
    const Range inputs = {begin, begin + kCodeBlock < share.k ? begin + kCodeBlock : share.k};
    const float* x = share.x + rows.begin * share.k;
    float* const tile = reinterpret_cast<float*>(share.packed) + rows.begin * share.k;
    for (int64_t r = 0; r < width; r += 4)
      pack_rows<V>(x + r * share.k, share.k, inputs, width - r < 4 ? width - r : 4, tile + r, width);
  }
}

}  // namespace outrider::simd
