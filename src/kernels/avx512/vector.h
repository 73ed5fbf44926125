// SPDX-License-Identifier: Apache-2.0
// Sixteen floats. Unnamed namespace on purpose: each file that includes this must have its own copy, see
// isa_ops.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/simd/half_bits.h"

namespace outrider {
namespace {

struct Avx512 {
  using Floats = __m512;
  using Ints = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kSums = 16;       // vectors of sums that the registers hold beside inputs
  static constexpr int kRowsAtOnce = 4;  // rows of a product with plain numbers
  static constexpr int kPanelsOfFewRows = 1;
  static constexpr int kManyRows = 5;       // from so many rows on, two panels share inputs
  static constexpr int kScoredQueries = 4;  // queries at most with scores that are summed side by side
  static constexpr int kScoreChains = 16;
  static constexpr int kScoreSums = 16;  // vectors of sums of scores that the registers hold
  // Vectors of values that 0, 1, 2, ... queries add up side by side.
  static constexpr int kValueVectors[] = {0, 4, 4, 4, 4};

  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  // The first n of 16 lanes; the others are zero.
  static Floats load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static void store_first(float* p, Floats v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static Floats all(float value) { return _mm512_set1_ps(value); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  // *x * b + c. The operand in memory keeps g++ from holding x in a register, of which sums need as many as
  // there are.
  static Floats multiply_add_all(const float* x, Floats b, Floats c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*x));
    return c;
  }
  // g++ would read a number from memory for each product that it is used in.
  static Floats in_register(Floats v) {
    asm("" : "+v"(v));
    return v;
  }
  // max() and min() return b where either is NaN.
  static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  // Returns `value`, but zero where x < bound.
  static Floats zero_below(float bound, Floats x, Floats value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, all(bound), _CMP_NLT_UQ), value);
  }

  static float sum(Floats v) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
  }
  // Number i of the result is sum(v[i]), with its bits: the additions of sum(), for all vectors at
  // once.
  static Floats sums(const Floats (&v)[kLanes]) {
    return combine_lanes(v, [](Floats a, Floats b) { return _mm512_add_ps(a, b); });
  }
  // Number i of the result is largest(v[i]).
  static Floats maxima(const Floats (&v)[kLanes]) {
    return combine_lanes(v, [](Floats a, Floats b) { return _mm512_max_ps(a, b); });
  }
  template <typename Operation>
  static Floats combine_lanes(const Floats (&v)[kLanes], Operation combine) {
    Floats halves[8], quarters[4], pairs[2];
    for (int i = 0; i < 8; ++i) {
      const Floats a = v[place_of(i)], b = v[place_of(i + 8)];
      halves[i] = combine(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    }
    for (int i = 0; i < 4; ++i) {
      const Floats a = halves[i], b = halves[i + 4];
      quarters[i] = combine(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
    }
    for (int i = 0; i < 2; ++i) {
      const auto a = _mm512_castps_pd(quarters[i]), b = _mm512_castps_pd(quarters[i + 2]);
      pairs[i] =
          combine(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    return combine(_mm512_shuffle_ps(pairs[0], pairs[1], 0x88), _mm512_shuffle_ps(pairs[0], pairs[1], 0xDD));
  }
  // The vector that must enter combine_lanes() as number i so that its result comes out in its place.
  static constexpr int place_of(int i) { return (i & 1) << 1 | (i >> 1 & 1) | (i & 4) << 1 | (i & 8) >> 1; }
  static float largest(Floats v) {
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
  }

  static Ints shift_left(Ints a, int bits) { return _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits)); }
  static Ints add(Ints a, int b) { return _mm512_add_epi32(a, _mm512_set1_epi32(b)); }
  static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
  static Ints round(Floats a) { return _mm512_cvtps_epi32(a); }
  static Ints halve(Ints a) { return _mm512_srai_epi32(a, 1); }
  static Ints sub(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  static Floats from_bits(Ints a) { return _mm512_castsi512_ps(a); }

  // Integer products. A lane holds four 8-bit numbers.
  static constexpr int kDotRows = 8;     // rows with sums that fit the register file beside the weights
  static constexpr int kDotVectors = 2;  // vectors of features that share loaded inputs
  static Ints load_ints(const std::byte* p) { return _mm512_loadu_si512(p); }
  static Ints all_ints(int32_t value) { return _mm512_set1_epi32(value); }
  static Ints low_nibbles(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
  static Ints high_nibbles(Ints a) { return low_nibbles(_mm512_srli_epi16(a, 4)); }
  // Sixteen bytes for look_up(), which replaces nibbles by them.
  static Ints sixteen_bytes(const int8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Ints look_up(Ints table, Ints nibbles) { return _mm512_shuffle_epi8(table, nibbles); }
  // g++ would put off additions of integers, and store all products until then.
  static Ints in_register(Ints sum) {
    asm("" : "+v"(sum));
    return sum;
  }
  // Sums of products of nibbles and signed bytes, two to a 16-bit number: eight of them fit.
  static Ints add_nibble_products(Ints sums, Ints nibbles, Ints bytes) {
    return in_register(_mm512_add_epi16(sums, _mm512_maddubs_epi16(nibbles, bytes)));
  }
  static Ints begin_nibble_sums(int32_t) { return all_ints(0); }
  static Ints end_nibble_sums(Ints sums, int32_t start) {
    return add(_mm512_madd_epi16(sums, _mm512_set1_epi16(1)), all_ints(start));
  }
  // Prepares weights for add_byte_products(), which adds the sum of w * x + kByteOffset * the sum of x.
  static constexpr int kByteOffset = 0;
  static Ints byte_weights(Ints a) { return a; }
  static Ints add_byte_products(Ints sums, Ints w, Ints x) {
    const Ints signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    const Ints products = _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x);
    return in_register(_mm512_add_epi32(sums, _mm512_madd_epi16(products, _mm512_set1_epi16(1))));
  }
  static Ints to_ints(Floats a) { return _mm512_cvtps_epi32(a); }
  static Floats absolute(Floats a) { return _mm512_abs_ps(a); }
  static int32_t sum_ints(Ints a) { return _mm512_reduce_add_epi32(a); }
  // Stores the number of each lane as 8 bits, which must hold it.
  static void store_bytes(int8_t* p, Ints a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }

  // Reads half-precision numbers that are consecutive in memory.
  static Floats load_halves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Floats load_bf16(const uint8_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  // E4M3, times 2^-8: the bits as half precision.
  static Floats load_e4m3_halves(const uint8_t* p) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    // Bit 14 is the sign, too.
    return _mm512_cvtph_ps(
        _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<int16_t>(0xBFFF))));
  }
  // Sixteen of them.
  static void widen_e4m3(const uint8_t* p, float* out) { store(out, load_e4m3_halves(p)); }
  // E4M3; NaN stays NaN.
  static Floats load_e4m3(const uint8_t* p) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i seven = _mm256_set1_epi16(0x7F);
    const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(wide, seven), seven);
    const __m256i half =
        _mm256_and_si256(_mm256_slli_epi16(wide, 7), _mm256_set1_epi16(static_cast<int16_t>(0xBFFF)));
    return mul(_mm512_cvtph_ps(_mm256_or_si256(half, nan)), all(256));
  }
  static Ints signed_bytes(const uint8_t* p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Floats all_half(const uint8_t* p) { return _mm512_cvtph_ps(_mm256_set1_epi16(half_bits(p))); }

  // Both stores round to nearest even; NaN stays NaN.
  static void store_halves(uint8_t* p, Floats v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  // Numbers beyond 448 become 448, and NaN what is not finite; others round to nearest even.
  static void store_e4m3(uint8_t* p, Floats v) {
    const __m512 magnitude = absolute(v), bounded = min(magnitude, all(448));
    const __m512i bits = _mm512_castps_si512(bounded), units = _mm512_castps_si512(all(0x1p14F));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 20), all_ints(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, all_ints(0x7FFFF)));
    const __m512i normal = _mm512_sub_epi32(_mm512_srli_epi32(rounded, 20), all_ints(120 << 3));
    // Multiples of 2^-9, which the sum rounds to.
    const __m512i small = _mm512_sub_epi32(_mm512_castps_si512(add(bounded, all(0x1p14F))), units);
    const __mmask16 is_small = _mm512_cmp_ps_mask(bounded, all(0x1p-6F), _CMP_LT_OQ);
    const __mmask16 is_not_finite = _mm512_cmp_ps_mask(magnitude, all(__builtin_huge_valf()), _CMP_NLT_UQ);
    const __m512i number = _mm512_mask_mov_epi32(normal, is_small, small);
    const __m512i code = _mm512_mask_mov_epi32(number, is_not_finite, all_ints(0x7F));
    const __m512i sign = _mm512_slli_epi32(_mm512_srai_epi32(_mm512_castps_si512(v), 31), 7);
    store_bytes(reinterpret_cast<int8_t*>(p), _mm512_or_si512(code, sign));
  }
  static void store_bf16(uint8_t* p, Floats v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
  }
};

}  // namespace
}  // namespace outrider
