// SPDX-License-Identifier: Apache-2.0
// Integer products and conversions of the emulation, which take most of its time. The loops over [32] lanes
// hold four signed bytes in each.
#pragma once

#include <cstdint>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace outrider::simt {

// Sums of a tile, by the register of mma_s8().
struct TileSums {
  int32_t* of[4];
};

#ifdef __AVX2__

// Bytes 0 and 2, or 1 and 3, of every lane as numbers of 16 bits.
struct BytePairs {
  __m256i even, odd;
};

[[gnu::always_inline]] inline BytePairs byte_pairs(__m256i lanes) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(lanes, 8), 8), _mm256_srai_epi16(lanes, 8)};
}

[[gnu::always_inline]] inline __m256i pair_products(BytePairs a, BytePairs b, __m256i sums) {
  const __m256i products =
      _mm256_add_epi32(_mm256_madd_epi16(a.even, b.even), _mm256_madd_epi16(a.odd, b.odd));
  return _mm256_add_epi32(sums, products);
}

[[gnu::always_inline]] inline __m256i load_lanes(const int32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
[[gnu::always_inline]] inline void store_lanes(int32_t* p, __m256i lanes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), lanes);
}

[[gnu::always_inline]] inline void add_byte_products(const int32_t* a, const int32_t* b, int32_t* sums) {
  for (int l = 0; l < 32; l += 8) {
    const BytePairs x = byte_pairs(load_lanes(a + l)), y = byte_pairs(load_lanes(b + l));
    store_lanes(sums + l, pair_products(x, y, load_lanes(sums + l)));
  }
}

[[gnu::always_inline]] inline void look_up_bytes(const int32_t* table, const int32_t* codes, int32_t* out) {
  const __m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  for (int l = 0; l < 32; l += 8) store_lanes(out + l, _mm256_shuffle_epi8(all, load_lanes(codes + l)));
}

#ifdef __F16C__
// Half-precision numbers in the lower halves of lanes become f32.
[[gnu::always_inline]] inline void widen_halves(const int32_t* bits, float* out) {
  for (int l = 0; l < 32; l += 8) {
    const __m256i low = _mm256_and_si256(load_lanes(bits + l), _mm256_set1_epi32(0xFFFF));
    const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    _mm256_storeu_ps(out + l, _mm256_cvtph_ps(halves));
  }
}
#endif

// Word `kWord` of every four.
template <int kWord>
[[gnu::always_inline]] inline BytePairs spread_word(BytePairs all) {
  constexpr int kAll = kWord * 0x55;
  return {_mm256_shuffle_epi32(all.even, kAll), _mm256_shuffle_epi32(all.odd, kAll)};
}

// Word `word` of the even rows, or of the odd ones, twice.
[[gnu::always_inline]] inline BytePairs words_of_rows(const int32_t* rows, int word, int parity) {
  const int32_t* row = rows + parity * 4 + word;
  return byte_pairs(_mm256_broadcastsi128_si256(_mm_setr_epi32(row[0], row[8], row[16], row[24])));
}

template <int kWord>
[[gnu::always_inline]] inline void add_word_products(const BytePairs (&features)[2],
                                                     const BytePairs (&inputs)[4][2], __m256i (&sums)[4]) {
  for (int f = 0; f < 2; ++f) {
    const BytePairs feature = spread_word<kWord>(features[f]);
    for (int parity = 0; parity < 2; ++parity)
      sums[f * 2 + parity] = pair_products(feature, inputs[kWord][parity], sums[f * 2 + parity]);
  }
}

[[gnu::always_inline]] inline void add_tile_products(TileSums sums, const int32_t* first,
                                                     const int32_t* second, const int32_t* rows) {
  BytePairs inputs[4][2];
  for (int i = 0; i < 8; ++i) inputs[i / 2][i % 2] = words_of_rows(rows, i / 2, i % 2);
  for (int l = 0; l < 32; l += 8) {
    const BytePairs features[2] = {byte_pairs(load_lanes(first + l)), byte_pairs(load_lanes(second + l))};
    __m256i totals[4];
    for (int i = 0; i < 4; ++i) totals[i] = load_lanes(sums.of[i] + l);
    add_word_products<0>(features, inputs, totals);
    add_word_products<1>(features, inputs, totals);
    add_word_products<2>(features, inputs, totals);
    add_word_products<3>(features, inputs, totals);
    for (int i = 0; i < 4; ++i) store_lanes(sums.of[i] + l, totals[i]);
  }
}

#else

[[gnu::always_inline]] inline int32_t byte_of(int32_t word, int index) {
  return static_cast<int8_t>(static_cast<uint32_t>(word) >> (8 * index) & 255);
}

[[gnu::always_inline]] inline void look_up_bytes(const int32_t* table, const int32_t* codes, int32_t* out) {
  for (int l = 0; l < 32; ++l) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) {
      const int code = byte_of(codes[l], i);
      word |= static_cast<uint32_t>(byte_of(table[code / 4], code % 4) & 255) << (8 * i);
    }
    out[l] = static_cast<int32_t>(word);
  }
}

[[gnu::always_inline]] inline void add_byte_products(const int32_t* a, const int32_t* b, int32_t* sums) {
  for (int l = 0; l < 32; ++l) {
    for (int i = 0; i < 4; ++i) sums[l] += byte_of(a[l], i) * byte_of(b[l], i);
  }
}

// Both tiles as numbers of 16 bits, so that the products of one sum lie side by side.
[[gnu::always_inline]] inline void add_tile_products(TileSums sums, const int32_t* first,
                                                     const int32_t* second, const int32_t* rows) {
  int16_t features[2][8][16], inputs[8][16];
  for (int l = 0; l < 32; ++l) {
    for (int i = 0; i < 4; ++i) {
      features[0][l / 4][l % 4 * 4 + i] = static_cast<int16_t>(byte_of(first[l], i));
      features[1][l / 4][l % 4 * 4 + i] = static_cast<int16_t>(byte_of(second[l], i));
      inputs[l / 4][l % 4 * 4 + i] = static_cast<int16_t>(byte_of(rows[l], i));
    }
  }
  for (int place = 0; place < 128; ++place) {
    const int f = place / 64, feature = place / 8 % 8, row = place % 8;
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += features[f][feature][i] * inputs[row][i];
    sums.of[f * 2 + row % 2][feature * 4 + row / 2] += sum;
  }
}

#endif

}  // namespace outrider::simt
