// SPDX-License-Identifier: Apache-2.0
// The products of attention on tiles. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512_bf16/attention.h"

namespace outrider::bf16_attention {
namespace {

struct TileProducts {
  static constexpr int kQueries = kTileRows;

  // See QueriesOfHead.
  static void score(const Bf16* q, const PackedBlock& block, int64_t head_dim, int /*queries*/,
                    float (*scores)[kBlock]) {
    const int64_t q_stride = head_dim * static_cast<int64_t>(sizeof(Bf16));
    const int64_t pitch = head_dim * 16;  // from one tile of entries to the next
    zero_tile<0>();
    zero_tile<1>();
    zero_tile<2>();
    zero_tile<3>();
    const Bf16* keys = block.keys;
    for (int64_t d = 0; d < head_dim; d += kStep, keys += kTileNumbers) {
      load_tile<4>(q + d, q_stride);
      load_tile<5>(keys);
      multiply_tiles<0, 4, 5>();
      if (block.tiles < 2) continue;
      load_tile<6>(keys + pitch);
      multiply_tiles<1, 4, 6>();
      if (block.tiles < 3) continue;
      load_tile<7>(keys + 2 * pitch);
      multiply_tiles<2, 4, 7>();
      if (block.tiles < 4) continue;
      load_tile<5>(keys + 3 * pitch);
      multiply_tiles<3, 4, 5>();
    }
    constexpr int64_t kStride = kBlock * sizeof(float);
    store_tile<0>(scores[0], kStride);
    store_tile<1>(scores[0] + 16, kStride);
    store_tile<2>(scores[0] + 32, kStride);
    store_tile<3>(scores[0] + 48, kStride);
  }

  // A group of fewer queries than a tile has rows is computed in a copy.
  static void add_values(const PackedBlock& block, int64_t head_dim, const Bf16 (*weights)[kBlock],
                         int queries, float* sums) {
    if (queries == kQueries) return add_to_tiles(block, head_dim, weights, sums);
    alignas(64) float copy[kQueries * kMaxHeadDim];
    const auto bytes = static_cast<size_t>(queries * head_dim) * sizeof(float);
    __builtin_memcpy(copy, sums, bytes);
    add_to_tiles(block, head_dim, weights, copy);
    __builtin_memcpy(sums, copy, bytes);
  }

 private:
  static void add_to_tiles(const PackedBlock& block, int64_t head_dim, const Bf16 (*weights)[kBlock],
                           float* sums) {
    const int64_t stride = head_dim * static_cast<int64_t>(sizeof(float));
    constexpr int64_t kWeightStride = kBlock * sizeof(Bf16);
    const int steps = (block.tiles + 1) / 2;
    for (int64_t d = 0; d < head_dim; d += 64) {
      const bool four = head_dim - d >= 64;  // tiles of 16 dims, else two
      load_tile<0>(sums + d, stride);
      load_tile<1>(sums + d + 16, stride);
      if (four) load_tile<2>(sums + d + 32, stride);
      if (four) load_tile<3>(sums + d + 48, stride);
      for (int step = 0; step < steps; ++step) {
        const Bf16* values = block.values + step * kStep * head_dim + d / 16 * kTileNumbers;
        load_tile<4>(weights[0] + step * kStep, kWeightStride);
        load_tile<5>(values);
        multiply_tiles<0, 4, 5>();
        load_tile<6>(values + kTileNumbers);
        multiply_tiles<1, 4, 6>();
        if (!four) continue;
        load_tile<7>(values + 2 * kTileNumbers);
        multiply_tiles<2, 4, 7>();
        load_tile<5>(values + 3 * kTileNumbers);
        multiply_tiles<3, 4, 5>();
      }
      store_tile<0>(sums + d, stride);
      store_tile<1>(sums + d + 16, stride);
      if (four) store_tile<2>(sums + d + 32, stride);
      if (four) store_tile<3>(sums + d + 48, stride);
    }
  }
};

void attend_on_tiles(const AttentionShare& share) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = kTileRowBytes;
    config.rows[tile] = kTileRows;
  }
  load_tile_config(config);
  attend_all<TileProducts>(share);
  release_tiles();
}

}  // namespace
}  // namespace outrider::bf16_attention
