// SPDX-License-Identifier: Apache-2.0
// Left-hand tiles of 16 features by 32 inputs, in blocks of kCodeBlock inputs of a strip of 32 features:
// [step][tile of the strip][16][32] bf16. Stored so for BF16, decoded a quarter of a block at a time for
// codes, so that decoding runs between the tile products of the block before. Unnamed namespace on purpose,
// see isa_ops.h.
#pragma once

#include <immintrin.h>

#include "kernels/amx/tile_inputs.h"

namespace outrider {
namespace {

constexpr int64_t kTileNumbers = kTileRows * kTileDepth;
constexpr int64_t kBlockNumbers = kStepsOfBlock * 2 * kTileNumbers;
constexpr int kQuarters = 4;

// Ahead of use, beside every load: there the memory's rate is highest; in bursts it is not.
constexpr int64_t kWeightPrefetch = 2048;  // bytes

struct StoredTiles {
  const std::byte* strip;

  explicit StoredTiles(const LinearShare& share, int64_t feature)
      : strip(share.weights + feature / kTileFeatures * share.strip_bytes) {}
  const Bf16* block(int64_t index) const {
    return reinterpret_cast<const Bf16*>(strip) + index * kBlockNumbers;
  }
};

// Common to both kinds of codes. Bytes of a block of 16 features: scales [16][groups], mins, codes [16][row].
template <int kGroup, int kRowBytes, bool kMin>
struct CodeBlocks {
  static constexpr int kGroups = kCodeBlock / kGroup;
  static constexpr int kScaleBytes = kTileRows * kGroups * 2;
  static constexpr int kBlockBytes = (kMin ? 2 : 1) * kScaleBytes + kTileRows * kRowBytes;

  const std::byte* blocks;
  float unit;
  alignas(64) float scales[kTileRows / 2 * kGroups];  // of the quarter's rows
  alignas(64) float negative_mins[kMin ? kTileRows / 2 * kGroups : 1];

  CodeBlocks(const LinearShare& share, int64_t feature) {
    const std::byte* strip = share.weights + feature / kTileFeatures * share.strip_bytes;
    __builtin_memcpy(&unit, strip, sizeof(unit));
    blocks = strip + kStripHeader;
  }

  static constexpr int kRowsOfQuarter = kTileRows / 2;

  // Reads the scales of a quarter (times `inflation`) and returns its first row of codes. Quarters 0 and 1
  // are the first tile.
  const std::byte* begin_quarter(int64_t block, int quarter, float inflation) {
    const std::byte* from = blocks + (block * 2 + quarter / 2) * kBlockBytes;
    const int64_t first = quarter % 2 * kRowsOfQuarter;
    const std::byte* halves = from + first * kGroups * 2;
    for (int i = 0; i < kRowsOfQuarter * kGroups; i += 16) {
      _mm512_store_ps(scales + i,
                      _mm512_mul_ps(load_halves(halves + i * 2), _mm512_set1_ps(unit * inflation)));
      if constexpr (kMin) {
        _mm512_store_ps(negative_mins + i, _mm512_mul_ps(load_halves(halves + kScaleBytes + i * 2),
                                                         _mm512_set1_ps(-unit * inflation)));
      }
    }
    return from + (kMin ? 2 : 1) * kScaleBytes + first * kRowBytes;
  }

  static __m512 load_halves(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Bf16* row_of(Bf16* tiles, int quarter, int row) {
    return tiles + quarter / 2 * kTileNumbers + (quarter % 2 * kRowsOfQuarter + row) * kTileDepth;
  }
};

// Word i of a row of codes holds those of inputs i, 32 + i, 64 + i and 96 + i. The sixteen values of a group
// stand as f32 in one register, whose upper words are their bf16 by truncation; one permutation looks 32 of
// them up, with 2 code + 1 as index, whose upper bits it ignores. Scales are 1 + 1/384 too large, half of
// what truncation takes off on average, which leaves numbers of eight bits as they are.
template <bool kMin>
struct NibbleTiles : CodeBlocks<32, 64, kMin> {
  using Base = CodeBlocks<32, 64, kMin>;
  __m512 values;

  NibbleTiles(const LinearShare& share, int64_t feature) : Base(share, feature) {
    const __m512 codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    values = _mm512_sub_ps(codes, _mm512_set1_ps(static_cast<float>(share.zero_code)));
  }

  void decode(int64_t block, int quarter, Bf16* tiles) {
    constexpr float kInflation = 1 + 1.0F / 384;
    const std::byte* codes = Base::begin_quarter(block, quarter, kInflation);
    for (int r = 0; r < Base::kRowsOfQuarter; ++r) {
      __builtin_prefetch(codes + r * 64 + kWeightPrefetch);
      const __m512i words = _mm512_loadu_si512(codes + r * 64);
      // An index ends in the bit below its code, which must be 1: it belongs to another code, so a copy has
      // it set.
      const __m512i for_odd_codes = _mm512_or_si512(words, _mm512_set1_epi16(0x0808));
      const __m512i for_code_2 = _mm512_or_si512(words, _mm512_set1_epi16(0x0080));
      const __m512i indices[4] = {_mm512_shldi_epi16(words, _mm512_set1_epi16(-1), 1),
                                  _mm512_srli_epi16(for_odd_codes, 3), _mm512_srli_epi16(for_code_2, 7),
                                  _mm512_srli_epi16(for_odd_codes, 11)};
      Bf16* to = Base::row_of(tiles, quarter, r);
      for (int g = 0; g < 4; ++g, to += 2 * kTileNumbers) {
        const __m512 scale = _mm512_set1_ps(Base::scales[r * 4 + g]);
        const __m512 table =
            kMin ? _mm512_fmadd_ps(values, scale, _mm512_set1_ps(Base::negative_mins[r * 4 + g]))
                 : _mm512_mul_ps(values, scale);
        _mm512_store_si512(to, _mm512_permutexvar_epi16(indices[g], (__m512i)table));
      }
    }
  }
};

template <int kGroup, bool kMin>
struct ByteTiles : CodeBlocks<kGroup, 128, kMin> {
  using Base = CodeBlocks<kGroup, 128, kMin>;
  using Base::Base;

  void decode(int64_t block, int quarter, Bf16* tiles) {
    const std::byte* codes = Base::begin_quarter(block, quarter, 1);
    for (int r = 0; r < Base::kRowsOfQuarter; ++r) {
      Bf16* to = Base::row_of(tiles, quarter, r);
      for (int step = 0; step < kStepsOfBlock; ++step, to += 2 * kTileNumbers) {
        __builtin_prefetch(codes + step * kTileDepth + kWeightPrefetch);
        const __m512 low = half_step(codes + step * kTileDepth, r, 2 * step);
        const __m512 high = half_step(codes + step * kTileDepth + 16, r, 2 * step + 1);
        _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
      }
      codes += kCodeBlock;
    }
  }

  __m512 half_step(const std::byte* codes, int row, int half) const {
    const int group = row * Base::kGroups + half * 16 / kGroup;
    const __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m512 numbers = _mm512_cvtepi32_ps(wide);
    const __m512 scale = _mm512_set1_ps(Base::scales[group]);
    if constexpr (kMin) return _mm512_fmadd_ps(numbers, scale, _mm512_set1_ps(Base::negative_mins[group]));
    return _mm512_mul_ps(numbers, scale);
  }
};

}  // namespace
}  // namespace outrider
