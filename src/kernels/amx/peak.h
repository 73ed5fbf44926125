// SPDX-License-Identifier: Apache-2.0
// Tiles that are only multiplied, see simd/peaks.h. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/amx/tiles.h"

namespace outrider {
namespace {

int64_t multiply_add_tiles(InputLayout inputs, int64_t rounds) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.rows[tile] = kTileRows;
    config.row_bytes[tile] = kTileRowBytes;
  }
  load_tile_config(config);
  const bool is_bf16 = inputs == InputLayout::kBF16Tiles;
  for (int64_t round = 0; round < rounds; ++round) {
    if (is_bf16) {
      multiply_tiles<0, 4, 6>();
      multiply_tiles<1, 4, 7>();
      multiply_tiles<2, 5, 6>();
      multiply_tiles<3, 5, 7>();
    } else {
      multiply_byte_tiles<0, 4, 6>();
      multiply_byte_tiles<1, 4, 7>();
      multiply_byte_tiles<2, 5, 6>();
      multiply_byte_tiles<3, 5, 7>();
    }
  }
  release_tiles();
  return rounds * 4 * kTileRows * kTileRows * (is_bf16 ? 32 : 64) * 2;
}

}  // namespace
}  // namespace outrider
