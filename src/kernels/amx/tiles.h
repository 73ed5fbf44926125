// SPDX-License-Identifier: Apache-2.0
// AMX tile instructions with the side effects spelled out: the intrinsics of g++ 12 tell the compiler neither
// that loads read memory nor that the configuration is 64 bytes long. Unnamed namespace on purpose, see
// isa_ops.h.
#pragma once

#include "kernels/amx/tile_config.h"

#ifdef OUTRIDER_EMULATED_TILES
#include "kernels/amx/emulated_tiles.h"
#else

namespace outrider {
namespace {

// Configuration belongs to the thread; release_tiles lets the kernel skip the tiles when it switches threads.
inline void load_tile_config(const TileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
}
inline void release_tiles() { asm volatile("tilerelease" : : : "memory"); }

template <int kTile>
inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile) : "memory");
}

// Rows of a tile lie `stride` bytes apart in memory.
template <int kTile>
inline void load_tile(const void* from, int64_t stride = kTileRowBytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}

// For data that is used once: what lies in the first-level cache stays there.
template <int kTile>
inline void stream_tile(const void* from, int64_t stride = kTileRowBytes) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
inline void store_tile(void* to, int64_t stride = kTileRowBytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
}

// C [m, n] f32 += A [m, 32] bf16 * B [16, n pairs] bf16; the two products of a pair are added first.
template <int kC, int kA, int kB>
inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB) : "memory");
}

// C [m, n] i32 += A [m, 64] i8 * B [16, n fours] i8
template <int kC, int kA, int kB>
inline void multiply_byte_tiles() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB) : "memory");
}

}  // namespace
}  // namespace outrider

#endif
