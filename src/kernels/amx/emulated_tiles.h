// SPDX-License-Identifier: Apache-2.0
// The functions of tiles.h without tile registers, for tests on processors that have none, as Intel's manual
// describes the instructions. Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include <immintrin.h>

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

// Four bytes of a row, once per lane.
template <int kTile>
inline __m512i all_of(int row, int word) {
  int32_t bits;
  __builtin_memcpy(&bits, g_tiles.tiles[kTile].bytes[row] + 4 * word, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

template <int kTile>
inline __m512i row_of_tile(int row) {
  return _mm512_loadu_si512(g_tiles.tiles[kTile].bytes[row]);
}

// Pairs of bf16 are two sums, which are added to C together.
template <int kC, int kA, int kB>
__attribute__((noinline)) void add_pairs() {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
  for (int m = 0; m < g_tiles.config.rows[kC]; ++m) {
    __m512 even = _mm512_setzero_ps(), odd = even;
    for (int k = 0; k < g_tiles.config.row_bytes[kA] / 4; ++k) {
      const __m512i a = all_of<kA>(m, k), b = row_of_tile<kB>(k);
      even = _mm512_fmadd_ps((__m512)_mm512_slli_epi32(a, 16), (__m512)_mm512_slli_epi32(b, 16), even);
      odd = _mm512_fmadd_ps((__m512)_mm512_and_si512(a, upper), (__m512)_mm512_and_si512(b, upper), odd);
    }
    const __m512 sum = _mm512_add_ps((__m512)row_of_tile<kC>(m), _mm512_add_ps(even, odd));
    _mm512_storeu_ps(g_tiles.tiles[kC].bytes[m], sum);
  }
}

// Subnormal numbers count as zero, and no floating-point flag changes.
template <int kC, int kA, int kB>
inline void multiply_tiles() {
  constexpr unsigned kSubnormalsAreZero = 0x8040;
  const unsigned control = _mm_getcsr();
  _mm_setcsr(control | kSubnormalsAreZero);
  add_pairs<kC, kA, kB>();
  _mm_setcsr(control);
}

// The instruction for vectors wants one unsigned side: b + 128, and 128 times the sum of a less.
template <int kC, int kA, int kB>
inline void multiply_byte_tiles() {
  const __m512i offset = _mm512_set1_epi8(-128);
  for (int m = 0; m < g_tiles.config.rows[kC]; ++m) {
    __m512i sum = row_of_tile<kC>(m), too_much = _mm512_setzero_si512();
    for (int k = 0; k < g_tiles.config.row_bytes[kA] / 4; ++k) {
      const __m512i a = all_of<kA>(m, k);
      sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(row_of_tile<kB>(k), offset), a);
      too_much = _mm512_dpbusd_epi32(too_much, offset, a);
    }
    _mm512_storeu_si512(g_tiles.tiles[kC].bytes[m], _mm512_sub_epi32(sum, too_much));
  }
}

}  // namespace
}  // namespace outrider
