// SPDX-License-Identifier: Apache-2.0
// The cached entries of one block of a row's list as right-hand operands of products of bf16 pairs: gathered
// from their slots, so that no slot outside the list is ever read. Unnamed namespace on purpose, see
// isa_ops.h.
#pragma once

#include <type_traits>

#include "kernels/avx512/transpose.h"
#include "kernels/avx512/vector.h"
#include "kernels/simd/attention.h"

namespace outrider::bf16_attention {
namespace {

using Bf16 = uint16_t;

constexpr int kBlock = simd::kBlock;
constexpr int kStep = 32;  // numbers that one product of tiles sums over
constexpr int64_t kMaxHeadDim = 256;
constexpr int64_t kTileNumbers = 16 * kStep;

// Entries outside the packed range are zeros, up to whole steps.
struct PackedBlock {
  alignas(64) Bf16 keys[kBlock * kMaxHeadDim];  // [16 entries][step of dims][16 pairs of dims][16 entries, 2]
  alignas(
      64) Bf16 values[kBlock * kMaxHeadDim];  // [step of entries][16 dims][16 pairs of entries][16 dims, 2]
  int tiles;                                  // of 16 entries, from the block's first on
  bool finite;                                // all values are: then a probability of zero takes an entry out
};

// Where the keys, or values, of a block's places are; places without entry point at zeros.
using Places = const uint8_t* [kBlock];

// Numbers [d, d + kStep) of a cached head. Numbers of Q8_0 are rounded to bf16.
template <typename Cached>
__m512i load_step(const uint8_t* head, int64_t d) {
  if constexpr (std::is_same_v<Cached, simd::CachedBf16<Avx512>>) {
    return _mm512_loadu_si512(head + 2 * d);
  } else {
    static_assert(Cached::kBlock == kStep);
    const uint8_t* const block = head + Cached::offset(d);
    const __m512 scale = Avx512::all_half(block);
    const auto half = [&](int first) {
      return scale * Avx512::to_floats(Avx512::signed_bytes(block + 2 + first));
    };
    return (__m512i)_mm512_cvtne2ps_pbh(half(16), half(0));
  }
}

// It also fetches the keys of `next`, which have at most a line for each step.
template <typename Cached>
void pack_keys(const Places& places, const Places& next, int tiles, int64_t head_dim, Bf16* out) {
  for (int tile = 0; tile < tiles; ++tile) {
    for (int64_t d = 0; d < head_dim; d += kStep, out += kTileNumbers) {
      __m512i rows[16];
      for (int i = 0; i < 16; ++i) {
        rows[i] = load_step<Cached>(places[tile * 16 + i], d);
        if (2 * d < Cached::offset(head_dim)) _mm_prefetch(next[tile * 16 + i] + 2 * d, _MM_HINT_T1);
      }
      transpose(rows);
      for (int i = 0; i < 16; ++i) _mm512_store_si512(out + i * kStep, rows[i]);
    }
  }
}

// Returns whether all values are finite.
template <typename Cached>
bool pack_values(const Places& places, int steps, int64_t head_dim, Bf16* out) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                       38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const __m512i magnitude = _mm512_set1_epi16(0x7FFF);
  __m512i largest = _mm512_setzero_si512();
  for (int step = 0; step < steps; ++step, out += kStep * head_dim) {
    for (int pair = 0; pair < 16; ++pair) {
      const int place = step * kStep + 2 * pair;
      for (int64_t d = 0; d < head_dim; d += kStep) {
        const __m512i a = load_step<Cached>(places[place], d);
        const __m512i b = load_step<Cached>(places[place + 1], d);
        largest = _mm512_max_epu16(largest, _mm512_and_si512(a, magnitude));
        largest = _mm512_max_epu16(largest, _mm512_and_si512(b, magnitude));
        Bf16* tile = out + d / 16 * kTileNumbers + pair * kStep;
        _mm512_store_si512(tile, _mm512_permutex2var_epi16(a, low, b));
        _mm512_store_si512(tile + kTileNumbers, _mm512_permutex2var_epi16(a, high, b));
      }
    }
  }
  return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(0x7F80)) == 0;
}

struct BlockPlaces {
  Places keys;
  Places values;
};

// Entries [entries.begin, entries.end) of the row's list must lie in the block that begins at `begin`.
void find_places(const AttentionArgs& args, const AttentionRow& row, int64_t kv_head, int64_t begin,
                 Range entries, BlockPlaces& places) {
  alignas(64) static const uint8_t kZeros[2 * kMaxHeadDim] = {};
  simd::BlockEntries found;
  found.count = 0;
  if (entries.begin < entries.end) simd::find_entries<Avx512>(args, row, kv_head, entries, found);
  for (int i = 0; i < kBlock; ++i) places.keys[i] = places.values[i] = kZeros;
  for (int i = 0; i < found.count; ++i) {
    const int64_t place = entries.begin - begin + i;
    places.keys[place] = reinterpret_cast<const uint8_t*>(args.k) + found.offsets[i];
    places.values[place] = reinterpret_cast<const uint8_t*>(args.v) + found.offsets[i];
  }
}

// Fetches heads [begin, end) of a block, of so many bytes each, into the second-level cache.
void fetch_heads(const Places& heads, int begin, int end, int64_t bytes) {
  for (int i = begin; i < end; ++i) {
    for (int64_t at = 0; at < bytes; at += 64) _mm_prefetch(heads[i] + at, _MM_HINT_T1);
  }
}

// Fetches these entries.
void fetch_block(const AttentionArgs& args, const AttentionRow& row, int64_t kv_head, int64_t begin,
                 Range entries) {
  BlockPlaces places;
  find_places(args, row, kv_head, begin, entries, places);
  const int64_t bytes = cached_head_bytes(args.kv_type, args.head_dim);
  fetch_heads(places.keys, 0, kBlock, bytes);
  fetch_heads(places.values, 0, kBlock, bytes);
}

// Packs these entries; finds the row's next block and fetches its keys.
void pack_block(const AttentionArgs& args, const AttentionRow& row, int64_t kv_head, int64_t begin,
                Range entries, PackedBlock& packed, BlockPlaces& next) {
  BlockPlaces places;
  find_places(args, row, kv_head, begin, entries, places);
  const int64_t next_begin = begin + kBlock;
  const int64_t end = static_cast<int64_t>(row.prefix_len) + row.tail_len;
  find_places(args, row, kv_head, next_begin,
              {next_begin, end < next_begin + kBlock ? end : next_begin + kBlock}, next);
  packed.tiles = static_cast<int>((entries.end - begin + 15) / 16);
  const auto pack = [&]<typename Cached>() {
    pack_keys<Cached>(places.keys, next.keys, packed.tiles, args.head_dim, packed.keys);
    packed.finite = pack_values<Cached>(places.values, (packed.tiles + 1) / 2, args.head_dim, packed.values);
  };
  if (args.kv_type == DType::kQ8_0) return pack.template operator()<simd::CachedQ8<Avx512>>();
  pack.template operator()<simd::CachedBf16<Avx512>>();
}

}  // namespace
}  // namespace outrider::bf16_attention
