// SPDX-License-Identifier: Apache-2.0
// Eight floats. Unnamed namespace on purpose: each file that includes this must have its own copy, see
// isa_ops.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/simd/half_bits.h"

namespace outrider {
namespace {

struct Avx2 {
  using Floats = __m256;
  using Ints = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kSums = 8;             // vectors of sums that the registers hold beside inputs
  static constexpr int kRowsAtOnce = 6;       // rows of a product with plain numbers
  static constexpr int kPanelsOfFewRows = 1;  // panels at once in a product of few rows
  static constexpr int kManyRows = 0;         // the register file is too small
  static constexpr int kScoredQueries = 3;    // queries at most with scores that are summed side by side
  static constexpr int kScoreChains = 8;      // sixteen cost 12 % of attention, see Avx2Portable
  static constexpr int kScoreSums = 12;       // vectors of sums of scores that the registers hold
  // Vectors of values that 0, 1, 2, ... queries add up side by side.
  static constexpr int kValueVectors[] = {0, 8, 4, 3, 2, 2};

  static __m256i first(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  // The first n of 8 lanes; the others are zero.
  static Floats load_first(const float* p, int64_t n) {
    return n >= kLanes ? load(p) : _mm256_maskload_ps(p, first(n));
  }
  static void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
  // AMD's processors take some twenty cycles for a store with a mask.
  static void store_first(float* p, Floats v, int64_t n) {
    if (n >= kLanes) return store(p, v);
    _mm256_maskstore_ps(p, first(n), v);
  }
  static Floats all(float value) { return _mm256_set1_ps(value); }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  // *x * b + c
  static Floats multiply_add_all(const float* x, Floats b, Floats c) { return multiply_add(all(*x), b, c); }
  // g++ would read a number from memory for each product that it is used in.
  static Floats in_register(Floats v) {
    asm("" : "+x"(v));
    return v;
  }
  // max() and min() return b where either is NaN.
  static Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  // Returns `value`, but zero where x < bound.
  static Floats zero_below(float bound, Floats x, Floats value) {
    return _mm256_and_ps(value, _mm256_cmp_ps(x, all(bound), _CMP_NLT_UQ));
  }

  static float sum(Floats v) {
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  // Number i of the result is sum(v[i]), with its bits: the additions of sum(), for all vectors at
  // once.
  static Floats sums(const Floats (&v)[kLanes]) {
    return combine_lanes(v, [](Floats a, Floats b) { return _mm256_add_ps(a, b); });
  }
  // Number i of the result is largest(v[i]).
  static Floats maxima(const Floats (&v)[kLanes]) {
    return combine_lanes(v, [](Floats a, Floats b) { return _mm256_max_ps(a, b); });
  }
  template <typename Operation>
  static Floats combine_lanes(const Floats (&v)[kLanes], Operation combine) {
    Floats quarters[4], pairs[2];
    for (int i = 0; i < 4; ++i) {
      const Floats a = v[place_of(i)], b = v[place_of(i + 4)];
      quarters[i] = combine(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    }
    for (int i = 0; i < 2; ++i) {
      const auto a = _mm256_castps_pd(quarters[i]), b = _mm256_castps_pd(quarters[i + 2]);
      pairs[i] =
          combine(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)), _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
    }
    return combine(_mm256_shuffle_ps(pairs[0], pairs[1], 0x88), _mm256_shuffle_ps(pairs[0], pairs[1], 0xDD));
  }
  // The vector that must enter combine_lanes() as number i so that its result comes out in its place.
  static constexpr int place_of(int i) { return (i & 1) << 1 | (i >> 1 & 1) | (i & 4); }
  static float largest(Floats v) {
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  static Ints shift_left(Ints a, int bits) { return _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits)); }
  static Ints add(Ints a, int b) { return _mm256_add_epi32(a, _mm256_set1_epi32(b)); }
  static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
  static Ints round(Floats a) { return _mm256_cvtps_epi32(a); }
  static Ints halve(Ints a) { return _mm256_srai_epi32(a, 1); }
  static Ints sub(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Floats from_bits(Ints a) { return _mm256_castsi256_ps(a); }

  // Integer products. A lane holds four 8-bit numbers.
  static constexpr int kDotRows = 4;     // rows with sums that fit the register file beside the weights
  static constexpr int kDotVectors = 2;  // vectors of features that share loaded inputs
  static Ints load_ints(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Ints all_ints(int32_t value) { return _mm256_set1_epi32(value); }
  static Ints low_nibbles(Ints a) { return _mm256_and_si256(a, _mm256_set1_epi8(15)); }
  static Ints high_nibbles(Ints a) { return low_nibbles(_mm256_srli_epi16(a, 4)); }
  // Sixteen bytes for look_up(), which replaces nibbles by them.
  static Ints sixteen_bytes(const int8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Ints look_up(Ints table, Ints nibbles) { return _mm256_shuffle_epi8(table, nibbles); }
  // g++ would put off additions of integers, and store all products until then.
  static Ints in_register(Ints sum) {
    asm("" : "+x"(sum));
    return sum;
  }
  // Sums of products of nibbles and signed bytes, two to a 16-bit number: eight of them fit.
  static Ints add_nibble_products(Ints sums, Ints nibbles, Ints bytes) {
    return in_register(_mm256_add_epi16(sums, _mm256_maddubs_epi16(nibbles, bytes)));
  }
  static Ints begin_nibble_sums(int32_t) { return all_ints(0); }
  static Ints end_nibble_sums(Ints sums, int32_t start) {
    return add(_mm256_madd_epi16(sums, _mm256_set1_epi16(1)), all_ints(start));
  }
  // Prepares weights for add_byte_products(), which adds the sum of w * x + kByteOffset * the sum of x.
  static constexpr int kByteOffset = 0;
  static Ints byte_weights(Ints a) { return a; }
  static Ints add_byte_products(Ints sums, Ints w, Ints x) {
    // Bits are flipped by any unit, _mm256_sign_epi8() works in the units that multiply.
    const Ints negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w);
    const Ints signed_x = _mm256_sub_epi8(_mm256_xor_si256(x, negative), negative);
    const Ints products = _mm256_maddubs_epi16(_mm256_abs_epi8(w), signed_x);
    return in_register(_mm256_add_epi32(sums, _mm256_madd_epi16(products, _mm256_set1_epi16(1))));
  }
  static Ints to_ints(Floats a) { return _mm256_cvtps_epi32(a); }
  static Floats absolute(Floats a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a); }
  static int32_t sum_ints(Ints a) {
    const __m128i quarter = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    const __m128i pair = _mm_add_epi32(quarter, _mm_unpackhi_epi64(quarter, quarter));
    return _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 1)));
  }
  // Stores the number of each lane as 8 bits, which must hold it.
  static void store_bytes(int8_t* p, Ints a) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }

  // Reads half-precision numbers that are consecutive in memory.
  static Floats load_halves(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats load_bf16(const uint8_t* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  // E4M3, times 2^-8: the bits as half precision.
  static Floats load_e4m3_halves(const uint8_t* p) {
    const __m128i wide = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    // Bit 14 is the sign, too.
    return _mm256_cvtph_ps(
        _mm_and_si128(_mm_slli_epi16(wide, 7), _mm_set1_epi16(static_cast<int16_t>(0xBFFF))));
  }
  // Sixteen of them.
  static void widen_e4m3(const uint8_t* p, float* out) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i half =
        _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<int16_t>(0xBFFF)));
    store(out, _mm256_cvtph_ps(_mm256_castsi256_si128(half)));
    store(out + kLanes, _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)));
  }
  // E4M3; NaN stays NaN.
  static Floats load_e4m3(const uint8_t* p) {
    const __m128i wide = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m128i seven = _mm_set1_epi16(0x7F);
    const __m128i nan = _mm_cmpeq_epi16(_mm_and_si128(wide, seven), seven);
    const __m128i half = _mm_and_si128(_mm_slli_epi16(wide, 7), _mm_set1_epi16(static_cast<int16_t>(0xBFFF)));
    return mul(_mm256_cvtph_ps(_mm_or_si128(half, nan)), all(256));
  }
  static Ints signed_bytes(const uint8_t* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats all_half(const uint8_t* p) { return _mm256_cvtph_ps(_mm_set1_epi16(half_bits(p))); }

  // Both stores round to nearest even; NaN stays NaN.
  static void store_halves(uint8_t* p, Floats v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  // Numbers beyond 448 become 448, and NaN what is not finite; others round to nearest even.
  static void store_e4m3(uint8_t* p, Floats v) {
    const __m256 magnitude = absolute(v), bounded = min(magnitude, all(448));
    const __m256i bits = _mm256_castps_si256(bounded), units = _mm256_castps_si256(all(0x1p14F));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 20), all_ints(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, all_ints(0x7FFFF)));
    const __m256i normal = _mm256_sub_epi32(_mm256_srli_epi32(rounded, 20), all_ints(120 << 3));
    // Multiples of 2^-9, which the sum rounds to.
    const __m256i small = _mm256_sub_epi32(_mm256_castps_si256(add(bounded, all(0x1p14F))), units);
    const __m256 is_small = _mm256_cmp_ps(bounded, all(0x1p-6F), _CMP_LT_OQ);
    const __m256i number = _mm256_blendv_epi8(normal, small, _mm256_castps_si256(is_small));
    const __m256 is_not_finite = _mm256_cmp_ps(magnitude, all(__builtin_huge_valf()), _CMP_NLT_UQ);
    const __m256i code = _mm256_blendv_epi8(number, all_ints(0x7F), _mm256_castps_si256(is_not_finite));
    const __m256i sign = _mm256_slli_epi32(_mm256_srai_epi32(_mm256_castps_si256(v), 31), 7);
    store_bytes(reinterpret_cast<int8_t*>(p), _mm256_or_si256(code, sign));
  }
  static void store_bf16(uint8_t* p, Floats v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, nan, is_nan), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
};

}  // namespace
}  // namespace outrider
