// SPDX-License-Identifier: Apache-2.0
// Left-hand tiles of 16 features by 32 inputs, in blocks of kCodeBlock inputs of a panel of 32 features:
// [step][tile of the panel][16][32] bf16. BF16 is stored so; codes are decoded a quarter of a block at a
// time, between the tile products of the previous block. Unnamed namespace on purpose,
// see isa_ops.h.
#pragma once

#include <immintrin.h>

#include "kernels/amx/tile_inputs.h"
#include "kernels/nibble_values.h"

namespace outrider {
namespace {

constexpr int64_t kTileNumbers = kTileRows * kTileDepth;
constexpr int64_t kBlockNumbers = kStepsOfBlock * 2 * kTileNumbers;
constexpr int kQuarters = 4;

// Bytes to prefetch ahead, with every load: this gave a higher memory rate than bursts. By measurement the
// rate falls with the distance, but codes are decoded more slowly than they can be read.
constexpr int64_t kCodePrefetch = 2048;
constexpr int64_t kTilePrefetch = 1024;

struct StoredTiles {
  const std::byte* panel;
  static constexpr float unit = 1;

  explicit StoredTiles(const LinearShare& share, int64_t feature)
      : panel(share.weights + feature / kTileFeatures * share.panel_bytes) {}
  const Bf16* block(int64_t index) const {
    return reinterpret_cast<const Bf16*>(panel) + index * kBlockNumbers;
  }
};

// The places of the parts of a panel of codes. A block of 16 features holds scales [16][groups], mins,
// codes [16][row]. Tiles are decoded in the panel's unit, a power of two, which outputs are multiplied by.
template <int kGroup, int kRowBytes, bool kMin>
struct CodeBlocks {
  static constexpr int kGroups = kCodeBlock / kGroup;
  static constexpr int kScaleBytes = kTileRows * kGroups * 2;
  static constexpr int kBlockBytes = (kMin ? 2 : 1) * kScaleBytes + kTileRows * kRowBytes;
  static constexpr int kRowsOfQuarter = kTileRows / 2;

  const std::byte* panel;
  float unit;

  CodeBlocks(const LinearShare& share, int64_t feature)
      : panel(share.weights + feature / kTileFeatures * share.panel_bytes) {
    __builtin_memcpy(&unit, panel, sizeof(unit));
  }

  // Quarters 0 and 1 of a block are the first tile.
  struct Quarter {
    const std::byte* scales;  // half precision
    const std::byte* codes;
  };
  Quarter quarter_at(int64_t block, int quarter) const {
    const std::byte* from = panel + kPanelHeader + (block * 2 + quarter / 2) * kBlockBytes;
    const int64_t first = quarter % 2 * kRowsOfQuarter;
    return {from + first * kGroups * 2, from + (kMin ? 2 : 1) * kScaleBytes + first * kRowBytes};
  }
  static Bf16* row_of(Bf16* tiles, int quarter, int row) {
    return tiles + quarter / 2 * kTileNumbers + (quarter % 2 * kRowsOfQuarter + row) * kTileDepth;
  }
};

// Reads the scales of a quarter's rows as f32.
template <int kGroup, int kRowBytes, bool kMin>
struct ScaledBlocks : CodeBlocks<kGroup, kRowBytes, kMin> {
  using Base = CodeBlocks<kGroup, kRowBytes, kMin>;
  static constexpr int kScales = Base::kRowsOfQuarter * Base::kGroups;

  alignas(64) float scales[kScales];
  alignas(64) float negative_mins[kMin ? kScales : 1];

  using Base::Base;

  // Reads the scales of a quarter, times `inflation`, and returns its codes.
  const std::byte* begin_quarter(int64_t block, int quarter, float inflation) {
    const auto from = Base::quarter_at(block, quarter);
    for (int i = 0; i < kScales; i += 16) {
      _mm512_store_ps(scales + i, _mm512_mul_ps(load_halves(from.scales + i * 2), _mm512_set1_ps(inflation)));
      if constexpr (kMin) {
        _mm512_store_ps(negative_mins + i, _mm512_mul_ps(load_halves(from.scales + Base::kScaleBytes + i * 2),
                                                         _mm512_set1_ps(-inflation)));
      }
    }
    // Broadcasts from memory are free; from a register, which the compiler would prefer, they take the port
    // of the permutations.
    asm("" : "+m"(scales), "+m"(negative_mins));
    return from.codes;
  }

  static __m512 load_halves(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
};

// words >> bits, on either vector port: shifts have one only, which permutations of words need too.
inline __m512i shift_words(__m512i words, int bits) {
  __m512i factor = _mm512_set1_epi16(static_cast<int16_t>(1 << (16 - bits)));
  asm("" : "+v"(factor));  // keeps the compiler from turning it into a shift
  return _mm512_mulhi_epu16(words, factor);
}

// Bit `bit` of words 16 to 31 set, and of the other words cleared. Where groups have 16 inputs, a step's
// second half is another group, and its indices lead to the second half of a table.
inline __m512i split_halves(__m512i indices, int bit) {
  const __m512i mask = _mm512_set1_epi16(static_cast<int16_t>(1 << bit));
  const __m512i upper = _mm512_inserti64x4(_mm512_setzero_si512(), _mm512_castsi512_si256(mask), 1);
  constexpr int kClearThenSet = 0xBA;  // (indices & ~mask) | upper
  return _mm512_ternarylogic_epi32(indices, mask, upper, kClearThenSet);
}

// Word i of a row of codes holds the codes of inputs i, 32 + i, 64 + i and 96 + i. Their numbers stand in a
// table (nibble_values.h), sixteen bf16 to a scale. Two scales' numbers, or one's twice, fill a register: one
// permutation looks 32 of them up, by the lowest five bits of each index.
template <int kGroup>
struct NibbleTiles : CodeBlocks<kGroup, 64, false> {
  using Base = CodeBlocks<kGroup, 64, false>;
  const uint16_t* numbers;

  NibbleTiles(const LinearShare& share, int64_t feature)
      : Base(share, feature), numbers(tile_numbers(share.code_values)) {}

  void decode(int64_t block, int quarter, Bf16* tiles) const {
    const auto [scales, codes] = Base::quarter_at(block, quarter);
    for (int r = 0; r < Base::kRowsOfQuarter; ++r) {
      __builtin_prefetch(codes + r * 64 + kCodePrefetch);
      const __m512i words = _mm512_loadu_si512(codes + r * 64);
      const __m512i indices[4] = {words, shift_words(words, 4), shift_words(words, 8),
                                  shift_words(words, 12)};
      const std::byte* of_row = scales + r * Base::kGroups * 2;
      Bf16* to = Base::row_of(tiles, quarter, r);
      for (int step = 0; step < kStepsOfBlock; ++step, to += 2 * kTileNumbers)
        _mm512_store_si512(to, numbers_of(of_row, step, indices[step]));
    }
  }

  __m512i numbers_of(const std::byte* scales, int step, __m512i indices) const {
    if constexpr (kGroup == 32) {
      return _mm512_permutexvar_epi16(indices, _mm512_broadcast_i64x4(sixteen(scales + step * 2)));
    } else {
      const __m512i table = _mm512_inserti64x4(_mm512_castsi256_si512(sixteen(scales + step * 4)),
                                               sixteen(scales + step * 4 + 2), 1);
      return _mm512_permutexvar_epi16(split_halves(indices, 4), table);
    }
  }

  __m256i sixteen(const std::byte* scale) const {
    uint16_t half;
    __builtin_memcpy(&half, scale, sizeof(half));
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(numbers + half * kTileNumbersStride));
  }
};

// Decodes codes with values that follow from scale and min. As f32 the values of a group fill one register;
// the upper words of it are the bf16 values by truncation. They are found with 2 code + 1 as index; its upper
// bits do not matter (a second group is found by the bit above). Scales are 1 + 1/384 too large: this offsets
// the average loss by truncation and leaves numbers of eight bits unchanged.
template <int kGroup>
struct MinNibbleTiles : ScaledBlocks<kGroup, 64, true> {
  using Base = ScaledBlocks<kGroup, 64, true>;
  using Base::Base;

  void decode(int64_t block, int quarter, Bf16* tiles) {
    constexpr float kInflation = 1 + 1.0F / 384;
    const std::byte* codes = Base::begin_quarter(block, quarter, kInflation);
    for (int r = 0; r < Base::kRowsOfQuarter; ++r) {
      __builtin_prefetch(codes + r * 64 + kCodePrefetch);
      const __m512i words = _mm512_loadu_si512(codes + r * 64);
      // An index ends in the bit below its code, which must be 1: it belongs to another code, so a copy has
      // it set.
      const __m512i for_odd_codes = _mm512_or_si512(words, _mm512_set1_epi16(0x0808));
      const __m512i for_code_2 = _mm512_or_si512(words, _mm512_set1_epi16(0x0080));
      const __m512i indices[4] = {_mm512_shldi_epi16(words, _mm512_set1_epi16(-1), 1),
                                  shift_words(for_odd_codes, 3), shift_words(for_code_2, 7),
                                  shift_words(for_odd_codes, 11)};
      Bf16* to = Base::row_of(tiles, quarter, r);
      for (int step = 0; step < kStepsOfBlock; ++step, to += 2 * kTileNumbers)
        _mm512_store_si512(to, numbers_of(r * Base::kGroups, step, indices[step]));
    }
  }

  __m512i numbers_of(int first_group, int step, __m512i indices) const {
    if constexpr (kGroup == 32) {
      return _mm512_permutexvar_epi16(indices, values_of(first_group + step));
    } else {
      const int group = first_group + 2 * step;
      return _mm512_permutex2var_epi16(values_of(group), split_halves(indices, 5), values_of(group + 1));
    }
  }

  __m512i values_of(int group) const {
    const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return (__m512i)_mm512_fmadd_ps(numbers, _mm512_set1_ps(Base::scales[group]),
                                    _mm512_set1_ps(Base::negative_mins[group]));
  }
};

template <int kGroup, bool kMin>
struct ByteTiles : ScaledBlocks<kGroup, 128, kMin> {
  using Base = ScaledBlocks<kGroup, 128, kMin>;
  using Base::Base;

  void decode(int64_t block, int quarter, Bf16* tiles) {
    const std::byte* codes = Base::begin_quarter(block, quarter, 1);
    for (int r = 0; r < Base::kRowsOfQuarter; ++r) {
      Bf16* to = Base::row_of(tiles, quarter, r);
      for (int step = 0; step < kStepsOfBlock; ++step, to += 2 * kTileNumbers) {
        __builtin_prefetch(codes + step * kTileDepth + kCodePrefetch);
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
