// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp as arrays, in loops that the compiler turns into vector instructions. Everything is always
// inlined: kernels are compiled once for each instruction set, and no copy may serve the whole program.
#pragma once

#include <cstdint>
#include <cstring>

#include "device_kernels/simt/byte_products.h"
#include "device_kernels/simt/emulated_operators.h"

#define SIMT [[gnu::always_inline]] inline
// Parts of kernels that are compiled by themselves, so that no function becomes very large. Each file has its
// own copy.
#define SIMT_PART [[gnu::noinline, maybe_unused]] static
// The loop that follows is written out, so that arrays in it are registers.
#define SIMT_UNROLL _Pragma("GCC unroll 16")

namespace outrider::simt {

inline constexpr int kWarp = 32;

template <typename T>
struct Lanes;

// A truth value of each lane: 0 or -1.
template <>
struct alignas(64) Lanes<bool> {
  int32_t v[kWarp];

  Lanes() = default;
  [[gnu::always_inline]] Lanes(bool all) {
    for (int32_t& lane : v) lane = -static_cast<int32_t>(all);
  }
  SIMT friend Lanes operator&&(const Lanes& a, const Lanes& b) {
    Lanes r;
    for (int l = 0; l < kWarp; ++l) r.v[l] = a.v[l] & b.v[l];
    return r;
  }
  SIMT friend Lanes operator||(const Lanes& a, const Lanes& b) {
    Lanes r;
    for (int l = 0; l < kWarp; ++l) r.v[l] = a.v[l] | b.v[l];
    return r;
  }
  SIMT friend Lanes operator!(const Lanes& a) {
    Lanes r;
    for (int l = 0; l < kWarp; ++l) r.v[l] = ~a.v[l];
    return r;
  }
};
using Bools = Lanes<bool>;

template <>
struct alignas(64) Lanes<float> {
  float v[kWarp];

  Lanes() = default;
  [[gnu::always_inline]] Lanes(float all) {
    for (float& lane : v) lane = all;
  }
  OUTRIDER_SIMT_COMPARISON(<)
  OUTRIDER_SIMT_COMPARISON(>)
  OUTRIDER_SIMT_COMPARISON(<=)
  OUTRIDER_SIMT_COMPARISON(>=)
  OUTRIDER_SIMT_COMPARISON(==)
};

// Integers wrap around, as they do on a device.
#define OUTRIDER_SIMT_INTEGER(op)                                                                \
  SIMT friend Lanes operator op(const Lanes& a, const Lanes& b) {                                \
    Lanes r;                                                                                     \
    for (int l = 0; l < kWarp; ++l)                                                              \
      r.v[l] = static_cast<int>(static_cast<uint32_t>(a.v[l]) op static_cast<uint32_t>(b.v[l])); \
    return r;                                                                                    \
  }
#define OUTRIDER_SIMT_SIGNED(op)                                  \
  SIMT friend Lanes operator op(const Lanes& a, const Lanes& b) { \
    Lanes r;                                                      \
    for (int l = 0; l < kWarp; ++l) r.v[l] = a.v[l] op b.v[l];    \
    return r;                                                     \
  }

template <>
struct alignas(64) Lanes<int> {
  int v[kWarp];

  Lanes() = default;
  [[gnu::always_inline]] Lanes(int all) {
    for (int& lane : v) lane = all;
  }
  OUTRIDER_SIMT_INTEGER(+)
  OUTRIDER_SIMT_INTEGER(-)
  OUTRIDER_SIMT_INTEGER(*)
  OUTRIDER_SIMT_INTEGER(&)
  OUTRIDER_SIMT_INTEGER(|)
  OUTRIDER_SIMT_INTEGER(^)
  OUTRIDER_SIMT_INTEGER(<<)
  OUTRIDER_SIMT_SIGNED(>>)
  OUTRIDER_SIMT_SIGNED(/)
  OUTRIDER_SIMT_SIGNED(%)
  OUTRIDER_SIMT_COMPARISON(<)
  OUTRIDER_SIMT_COMPARISON(>)
  OUTRIDER_SIMT_COMPARISON(<=)
  OUTRIDER_SIMT_COMPARISON(>=)
  OUTRIDER_SIMT_COMPARISON(==)
};
#undef OUTRIDER_SIMT_INTEGER
#undef OUTRIDER_SIMT_SIGNED

SIMT Lanes<int> lane_id() {
  Lanes<int> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = l;
  return r;
}

// Functions of one or two numbers, for lanes and for plain numbers. max_of and min_of return b where either
// is NaN, as vectors of a CPU do.
#define OUTRIDER_SIMT_FUNCTION(name, expression)           \
  SIMT float name(float x) { return expression; }          \
  SIMT Lanes<float> name(const Lanes<float>& a) {          \
    Lanes<float> r;                                        \
    for (int l = 0; l < kWarp; ++l) r.v[l] = name(a.v[l]); \
    return r;                                              \
  }
OUTRIDER_SIMT_FUNCTION(abs_of, __builtin_fabsf(x))
OUTRIDER_SIMT_FUNCTION(sqrt_rn, __builtin_sqrtf(x))
OUTRIDER_SIMT_BINARY(float, add_rn, x + y)
OUTRIDER_SIMT_BINARY(float, sub_rn, x - y)
OUTRIDER_SIMT_BINARY(float, mul_rn, x* y)
OUTRIDER_SIMT_BINARY(float, div_rn, x / y)
OUTRIDER_SIMT_BINARY(float, max_of, x > y ? x : y)
OUTRIDER_SIMT_BINARY(float, min_of, x < y ? x : y)
#undef OUTRIDER_SIMT_FUNCTION

SIMT float fma_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SIMT Lanes<float> fma_rn(const Lanes<float>& a, const Lanes<float>& b, const Lanes<float>& c) {
  Lanes<float> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = __builtin_fmaf(a.v[l], b.v[l], c.v[l]);
  return r;
}

SIMT float to_float(int a) { return static_cast<float>(a); }
SIMT Lanes<float> to_float(const Lanes<int>& a) {
  Lanes<float> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = static_cast<float>(a.v[l]);
  return r;
}

// To nearest, ties to even. NaN and numbers that int does not hold give the lowest int.
SIMT_PART Lanes<int> round_int(const Lanes<float>& a) {
  Lanes<int> r;
  for (int l = 0; l < kWarp; ++l) {
    const float whole = __builtin_rintf(a.v[l]);
    const bool fits = whole >= -0x1p31F && whole < 0x1p31F;
    r.v[l] = fits ? static_cast<int>(fits ? whole : 0.0F) : INT32_MIN;
  }
  return r;
}

SIMT Lanes<float> from_bits(const Lanes<int>& a) {
  Lanes<float> r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}
SIMT Lanes<int> bits_of(const Lanes<float>& a) {
  Lanes<int> r;
  std::memcpy(r.v, a.v, sizeof(r.v));
  return r;
}

// The half-precision number with these bits.
SIMT_PART Lanes<float> from_half(const Lanes<int>& bits) {
  Lanes<float> r;
#ifdef __F16C__
  widen_halves(bits.v, r.v);
#else
  for (int l = 0; l < kWarp; ++l) {
    const auto half = static_cast<uint32_t>(bits.v[l]);
    const uint32_t shifted = (half & 0x7FFF) << 13;
    float small;
    std::memcpy(&small, &shifted, sizeof(small));
    small *= 0x1p112F;  // exact
    uint32_t finite;
    std::memcpy(&finite, &small, sizeof(finite));
    const bool is_finite = (half & 0x7C00) != 0x7C00;
    const uint32_t all = (is_finite ? finite : shifted | 0x7F800000) | (half & 0x8000) << 16;
    std::memcpy(&r.v[l], &all, sizeof(all));
  }
#endif
  return r;
}

// The bits of the nearest half-precision number, ties to even. NaN has some bits of NaN.
SIMT_PART Lanes<int> half_bits_of(const Lanes<float>& a) {
  Lanes<int> r;
  for (int l = 0; l < kWarp; ++l) {
    uint32_t bits;
    std::memcpy(&bits, &a.v[l], sizeof(bits));
    const uint32_t sign = bits & 0x80000000, size = bits ^ sign;
    const uint32_t normal = (size + (size >> 13 & 1) + 0xFFF - (112U << 23)) >> 13;
    float shifted;  // by a number with the unit of subnormal half-precision numbers
    std::memcpy(&shifted, &size, sizeof(shifted));
    shifted += 0.5F;
    uint32_t subnormal;
    std::memcpy(&subnormal, &shifted, sizeof(subnormal));
    subnormal -= 0x3F000000;
    const uint32_t finite = size < 0x38800000 ? subnormal : normal;
    const uint32_t large = size > 0x7F800000 ? 0x7FFF : 0x7C00;
    r.v[l] = static_cast<int>((size >= 0x47800000 ? large : finite) | sign >> 16);
  }
  return r;
}

template <typename T>
SIMT Lanes<T> select(const Bools& mask, const Lanes<T>& a, const Lanes<T>& b) {
  Lanes<T> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = mask.v[l] != 0 ? a.v[l] : b.v[l];
  return r;
}

template <typename T>
SIMT Lanes<T> shuffle_xor(const Lanes<T>& x, int mask) {
  Lanes<T> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = x.v[l ^ mask];
  return r;
}
// The number of lane `from`.
template <typename T>
SIMT T shuffle(const Lanes<T>& x, int from) {
  return x.v[from];
}
// The number of another lane for each lane.
template <typename T>
SIMT Lanes<T> shuffle(const Lanes<T>& x, const Lanes<int>& from) {
  Lanes<T> r;
  for (int l = 0; l < kWarp; ++l) r.v[l] = x.v[from.v[l]];
  return r;
}

// Replaces each byte of `codes`, a number from 0 to 15, by the byte of the table with this number.
SIMT_PART Lanes<int> look_up(const int (&table)[4], const Lanes<int>& codes) {
  Lanes<int> r;
  look_up_bytes(table, codes.v, r.v);
  return r;
}

// c + the products of four signed bytes
SIMT_PART Lanes<int> dp4a(const Lanes<int>& a, const Lanes<int>& b, Lanes<int> c) {
  add_byte_products(a.v, b.v, c.v);
  return c;
}

// The product of a tile of signed bytes of 16 features and 32 inputs with a tile of 8 rows, added to c. Lane
// 4g + t has inputs 4t to 4t + 3 of features g (a[0]) and g + 8 (a[1]) and of row g (b[0]), and the inputs 16
// further on (a[2], a[3], b[1]). It gets sums for rows 2t and 2t + 1: of feature g in c[0] and c[1], and of
// feature g + 8 in c[2] and c[3].
SIMT_PART void mma_s8(Lanes<int> (&c)[4], const Lanes<int> (&a)[4], const Lanes<int> (&b)[2]) {
  add_tile_products({c[0].v, c[1].v, c[2].v, c[3].v}, a[0].v, a[1].v, b[0].v);
  add_tile_products({c[0].v, c[1].v, c[2].v, c[3].v}, a[2].v, a[3].v, b[1].v);
}
// As above, with the 16 inputs of a[0] and a[1].
SIMT_PART void mma_s8(Lanes<int> (&c)[4], const Lanes<int> (&a)[2], const Lanes<int>& b) {
  add_tile_products({c[0].v, c[1].v, c[2].v, c[3].v}, a[0].v, a[1].v, b.v);
}

}  // namespace outrider::simt
