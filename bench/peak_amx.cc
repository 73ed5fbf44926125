// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "peaks.h"

namespace outrider {

int64_t multiply_add_amx(int64_t rounds) {
  constexpr int kRows = 16, kRowBytes = 64;
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = kRowBytes;
    config.rows[tile] = kRows;
  }
  asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return rounds * 4 * kRows * 16 * 32 * 2;  // 16 x 16 results of 32 products
}

}  // namespace outrider
