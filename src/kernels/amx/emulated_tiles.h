// SPDX-License-Identifier: Apache-2.0
// The functions of tiles.h without tile registers, for tests on processors that have none: as Intel's manual
// describes the instructions, but for subnormal numbers, which the processor takes for zero.
#pragma once

#include "kernels/amx/tile_config.h"

namespace outrider {
namespace {

struct EmulatedTile {
  uint8_t bytes[kTileRows][kTileRowBytes];
};

struct EmulatedTiles {
  TileConfig config;
  EmulatedTile tiles[8];
};
thread_local EmulatedTiles g_tiles;

inline void load_tile_config(const TileConfig& config) {
  g_tiles.config = config;
  __builtin_memset(g_tiles.tiles, 0, sizeof(g_tiles.tiles));
}
inline void release_tiles() { g_tiles.config = {}; }

template <int kTile>
inline void zero_tile() {
  __builtin_memset(&g_tiles.tiles[kTile], 0, sizeof(EmulatedTile));
}

template <int kTile>
inline void load_tile(const void* from, int64_t stride = kTileRowBytes) {
  zero_tile<kTile>();
  for (int row = 0; row < g_tiles.config.rows[kTile]; ++row) {
    __builtin_memcpy(g_tiles.tiles[kTile].bytes[row], static_cast<const uint8_t*>(from) + row * stride,
                     g_tiles.config.row_bytes[kTile]);
  }
}

template <int kTile>
inline void stream_tile(const void* from, int64_t stride = kTileRowBytes) {
  load_tile<kTile>(from, stride);
}

template <int kTile>
inline void store_tile(void* to, int64_t stride = kTileRowBytes) {
  for (int row = 0; row < g_tiles.config.rows[kTile]; ++row) {
    __builtin_memcpy(static_cast<uint8_t*>(to) + row * stride, g_tiles.tiles[kTile].bytes[row],
                     g_tiles.config.row_bytes[kTile]);
  }
}

template <typename Number, int kTile>
inline Number tile_number(int row, int column) {
  Number number;
  __builtin_memcpy(&number, g_tiles.tiles[kTile].bytes[row] + column * sizeof(Number), sizeof(Number));
  return number;
}

template <int kTile>
inline float tile_bf16(int row, int column) {
  const uint32_t bits = static_cast<uint32_t>(tile_number<uint16_t, kTile>(row, column)) << 16;
  float number;
  __builtin_memcpy(&number, &bits, sizeof(number));
  return number;
}

// C [m, n] += sum_of(m, n), over 4-byte numbers of C.
template <typename Number, int kC, typename SumOf>
inline void add_to_tile(SumOf sum_of) {
  const TileConfig& config = g_tiles.config;
  for (int m = 0; m < config.rows[kC]; ++m) {
    for (int n = 0; n < config.row_bytes[kC] / 4; ++n) {
      const Number sum = tile_number<Number, kC>(m, n) + sum_of(m, n);
      __builtin_memcpy(g_tiles.tiles[kC].bytes[m] + n * sizeof(Number), &sum, sizeof(sum));
    }
  }
}

template <int kC, int kA, int kB>
inline void multiply_tiles() {
  add_to_tile<float, kC>([](int m, int n) {
    float even = 0, odd = 0;
    for (int k = 0; k < g_tiles.config.row_bytes[kA] / 4; ++k) {
      even += tile_bf16<kA>(m, 2 * k) * tile_bf16<kB>(k, 2 * n);
      odd += tile_bf16<kA>(m, 2 * k + 1) * tile_bf16<kB>(k, 2 * n + 1);
    }
    return even + odd;
  });
}

template <int kC, int kA, int kB>
inline void multiply_byte_tiles() {
  add_to_tile<int32_t, kC>([](int m, int n) {
    int32_t sum = 0;
    for (int k = 0; k < g_tiles.config.row_bytes[kA]; ++k)
      sum += tile_number<int8_t, kA>(m, k) * tile_number<int8_t, kB>(k / 4, 4 * n + k % 4);
    return sum;
  });
}

}  // namespace
}  // namespace outrider
