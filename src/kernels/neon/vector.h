// SPDX-License-Identifier: Apache-2.0
// Four floats. Unnamed namespace on purpose: each file that includes this must have its own copy, see
// isa_ops.h.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/simd/half_bits.h"

namespace outrider {
namespace {

struct Neon {
  using Floats = float32x4_t;
  using Ints = int32x4_t;
  static constexpr int kLanes = 4;
  static constexpr int kSums = 16;            // vectors of sums that the registers hold beside inputs
  static constexpr int kRowsAtOnce = 6;       // rows of a product with plain numbers
  static constexpr int kPanelsOfFewRows = 1;  // panels at once in a product of few rows
  static constexpr int kManyRows = 0;         // the register file is too small
  static constexpr int kScoredQueries = 4;    // queries at most with scores that are summed side by side
  static constexpr int kScoreChains = 16;
  static constexpr int kScoreSums = 16;  // vectors of sums of scores that the registers hold
  // Vectors of values that 0, 1, 2, ... queries add up side by side.
  static constexpr int kValueVectors[] = {0, 4, 4, 4, 4};

  static Floats load(const float* p) { return vld1q_f32(p); }
  // The first n of 4 lanes; the others are zero.
  static Floats load_first(const float* p, int64_t n) {
    if (n >= kLanes) return load(p);
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  static void store(float* p, Floats v) { vst1q_f32(p, v); }
  static void store_first(float* p, Floats v, int64_t n) {
    if (n >= kLanes) return store(p, v);
    float lanes[kLanes];
    store(lanes, v);
    for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
  }
  static Floats all(float value) { return vdupq_n_f32(value); }
  static Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
  static Floats sub(Floats a, Floats b) { return vsubq_f32(a, b); }
  static Floats mul(Floats a, Floats b) { return vmulq_f32(a, b); }
  static Floats div(Floats a, Floats b) { return vdivq_f32(a, b); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  // *x * b + c
  static Floats multiply_add_all(const float* x, Floats b, Floats c) { return multiply_add(all(*x), b, c); }
  // g++ would read a number from memory for each product that it is used in.
  static Floats in_register(Floats v) {
    asm("" : "+w"(v));
    return v;
  }
  // max() and min() return b where either is NaN.
  static Floats max(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Floats min(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  // Returns `value`, but zero where x < bound.
  static Floats zero_below(float bound, Floats x, Floats value) {
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(value), vcltq_f32(x, all(bound))));
  }

  static float sum(Floats v) {
    const float32x2_t pair = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vpadds_f32(pair);
  }
  // Number i of the result is sum(v[i]), with its bits.
  static Floats sums(const Floats (&v)[kLanes]) {
    const auto pair = [&v](int i) { return vadd_f32(vget_low_f32(v[i]), vget_high_f32(v[i])); };
    return vpaddq_f32(vcombine_f32(pair(0), pair(1)), vcombine_f32(pair(2), pair(3)));
  }
  // Number i of the result is largest(v[i]).
  static Floats maxima(const Floats (&v)[kLanes]) {
    return vpmaxq_f32(vpmaxq_f32(v[0], v[1]), vpmaxq_f32(v[2], v[3]));
  }
  static float largest(Floats v) {
    const Floats pair = max(v, vextq_f32(v, v, 2));
    return vgetq_lane_f32(max(pair, vextq_f32(pair, pair, 1)), 0);
  }

  static Ints shift_left(Ints a, int bits) { return vshlq_s32(a, all_ints(bits)); }
  static Ints add(Ints a, int b) { return vaddq_s32(a, all_ints(b)); }
  static Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
  static Floats to_floats(Ints a) { return vcvtq_f32_s32(a); }
  static Ints round(Floats a) { return vcvtnq_s32_f32(a); }
  static Ints halve(Ints a) { return vshrq_n_s32(a, 1); }
  static Ints sub(Ints a, Ints b) { return vsubq_s32(a, b); }
  static Floats from_bits(Ints a) { return vreinterpretq_f32_s32(a); }

  // Integer products. A lane holds four 8-bit numbers.
  static constexpr int kDotRows = 4;     // rows with sums that fit the register file beside the weights
  static constexpr int kDotVectors = 4;  // vectors of features that share loaded inputs
  static Ints load_ints(const std::byte* p) {
    return vreinterpretq_s32_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(p)));
  }
  static Ints all_ints(int32_t value) { return vdupq_n_s32(value); }
  static Ints low_nibbles(Ints a) {
    return vreinterpretq_s32_u8(vandq_u8(vreinterpretq_u8_s32(a), vdupq_n_u8(15)));
  }
  static Ints high_nibbles(Ints a) { return vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(a), 4)); }
  // Sixteen bytes for look_up(), which replaces nibbles by them.
  static Ints sixteen_bytes(const int8_t* p) { return vreinterpretq_s32_s8(vld1q_s8(p)); }
  static Ints look_up(Ints table, Ints nibbles) {
    return vreinterpretq_s32_s8(vqtbl1q_s8(vreinterpretq_s8_s32(table), vreinterpretq_u8_s32(nibbles)));
  }
  // Sums of products of signed bytes, as which nibbles serve, too.
  static Ints add_byte_products(Ints sums, Ints w, Ints x) {
    return vdotq_s32(sums, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(x));
  }
  static constexpr int kByteOffset = 0;  // nothing is added to the products
  static Ints byte_weights(Ints a) { return a; }
  static Ints add_nibble_products(Ints sums, Ints nibbles, Ints bytes) {
    return add_byte_products(sums, nibbles, bytes);
  }
  static Ints begin_nibble_sums(int32_t start) { return all_ints(start); }
  static Ints end_nibble_sums(Ints sums, int32_t) { return sums; }
  static Ints to_ints(Floats a) { return vcvtnq_s32_f32(a); }
  static Floats absolute(Floats a) { return vabsq_f32(a); }
  static int32_t sum_ints(Ints a) { return vaddvq_s32(a); }
  // Stores the number of each lane as 8 bits, which must hold it.
  static void store_bytes(int8_t* p, Ints a) {
    const int16x4_t words = vmovn_s32(a);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    const int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
    __builtin_memcpy(p, &four, sizeof(four));
  }

  // Reads half-precision numbers that are consecutive in memory.
  static Floats load_halves(const uint8_t* p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
  static Floats load_bf16(const uint8_t* p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
  }
  // E4M3, times 2^-8: the bits as half precision.
  static Floats load_e4m3_halves(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    // Bit 14 is the sign, too.
    const int16x4_t half =
        vand_s16(vshl_n_s16(vget_low_s16(wide), 7), vdup_n_s16(static_cast<int16_t>(0xBFFF)));
    return vcvt_f32_f16(vreinterpret_f16_s16(half));
  }
  // Sixteen of them.
  static void widen_e4m3(const uint8_t* p, float* out) {
    for (int i = 0; i < 16; i += kLanes) store(out + i, load_e4m3_halves(p + i));
  }
  // E4M3; NaN stays NaN.
  static Floats load_e4m3(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    const int16x4_t wide = vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four))));
    const int16x4_t seven = vdup_n_s16(0x7F);
    const uint16x4_t nan = vceq_s16(vand_s16(wide, seven), seven);
    const int16x4_t half = vand_s16(vshl_n_s16(wide, 7), vdup_n_s16(static_cast<int16_t>(0xBFFF)));
    return mul(vcvt_f32_f16(vreinterpret_f16_u16(vorr_u16(vreinterpret_u16_s16(half), nan))), all(256));
  }
  static Ints signed_bytes(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof(four));
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)))));
  }
  static Floats all_half(const uint8_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_s16(vdup_n_s16(half_bits(p))));
  }

  // Both stores round to nearest even; NaN stays NaN.
  static void store_halves(uint8_t* p, Floats v) { vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(v))); }
  // Numbers beyond 448 become 448, and NaN what is not finite; others round to nearest even.
  static void store_e4m3(uint8_t* p, Floats v) {
    const Floats magnitude = absolute(v), bounded = min(magnitude, all(448));
    const uint32x4_t bits = vreinterpretq_u32_f32(bounded), units = vreinterpretq_u32_f32(all(0x1p14F));
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 20), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFFF)));
    const uint32x4_t normal = vsubq_u32(vshrq_n_u32(rounded, 20), vdupq_n_u32(120 << 3));
    // Multiples of 2^-9, which the sum rounds to.
    const uint32x4_t small = vsubq_u32(vreinterpretq_u32_f32(add(bounded, all(0x1p14F))), units);
    const uint32x4_t number = vbslq_u32(vcltq_f32(bounded, all(0x1p-6F)), small, normal);
    const uint32x4_t is_finite = vcltq_f32(magnitude, all(__builtin_huge_valf()));
    const uint32x4_t code = vbslq_u32(is_finite, number, vdupq_n_u32(0x7F));
    const int32x4_t sign = vshlq_n_s32(vshrq_n_s32(vreinterpretq_s32_f32(v), 31), 7);
    store_bytes(reinterpret_cast<int8_t*>(p), vorrq_s32(vreinterpretq_s32_u32(code), sign));
  }
  static void store_bf16(uint8_t* p, Floats v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
    const uint32x4_t nan = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t kept = vbslq_u32(vceqq_f32(v, v), rounded, nan);
    vst1_u8(p, vreinterpret_u8_u16(vshrn_n_u32(kept, 16)));
  }
};

}  // namespace
}  // namespace outrider
