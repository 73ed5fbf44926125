// SPDX-License-Identifier: Apache-2.0
// Vectors of any size in plain C++, for tests: with them the kernels run as on other processors. Their
// functions do what the functions of avx2/vector.h do.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tensor/dtype.h"

namespace outrider {

template <int kCount>
struct PlainLanes {
  using Floats = std::array<float, kCount>;
  using Ints = std::array<int32_t, kCount>;
  using Bytes = std::array<int8_t, 4 * kCount>;
  static constexpr int kLanes = kCount;
  static constexpr int kSums = 16;
  static constexpr int kRowsAtOnce = 4;
  static constexpr int kPanelsOfFewRows = 1;
  static constexpr int kManyRows = kCount == 16 ? 5 : 0;
  static constexpr int kScoredQueries = 3;
  static constexpr int kScoreChains = 16;
  static constexpr int kScoreSums = 12;
  static constexpr int kValueVectors[] = {0, 4, 4, 3, 2};
  static constexpr int kDotRows = 4;
  static constexpr int kDotVectors = kCount == 4 ? 4 : 2;
  static constexpr int kByteOffset = 0;

  template <typename Result, typename Function>
  static Result each(Function function) {
    Result result;
    for (size_t i = 0; i < kCount; ++i) result[i] = function(i);
    return result;
  }

  static Floats load(const float* p) {
    return each<Floats>([=](size_t i) { return p[i]; });
  }
  static Floats load_first(const float* p, int64_t n) {
    return each<Floats>([=](size_t i) { return static_cast<int64_t>(i) < n ? p[i] : 0; });
  }
  static void store(float* p, const Floats& v) { store_first(p, v, kCount); }
  static void store_first(float* p, const Floats& v, int64_t n) {
    for (int64_t i = 0; i < n; ++i) p[i] = v[static_cast<size_t>(i)];
  }
  static Floats all(float value) {
    return each<Floats>([=](size_t) { return value; });
  }
  static Floats add(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] + b[i]; });
  }
  static Floats sub(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] - b[i]; });
  }
  static Floats mul(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] * b[i]; });
  }
  static Floats div(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] / b[i]; });
  }
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return each<Floats>([&](size_t i) { return std::fma(a[i], b[i], c[i]); });
  }
  static Floats multiply_add_all(const float* x, const Floats& b, const Floats& c) {
    return multiply_add(all(*x), b, c);
  }
  static Floats in_register(const Floats& v) { return v; }
  static Floats max(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] > b[i] ? a[i] : b[i]; });
  }
  static Floats min(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] < b[i] ? a[i] : b[i]; });
  }
  static Floats zero_below(float bound, const Floats& x, const Floats& value) {
    return each<Floats>([&](size_t i) { return x[i] < bound ? 0 : value[i]; });
  }
  static Floats absolute(const Floats& a) {
    return each<Floats>([&](size_t i) { return std::abs(a[i]); });
  }
  // Halves are combined until one number is left.
  template <typename Combine>
  static float combined(Floats v, Combine combine) {
    for (size_t half = kCount / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) v[i] = combine(v[i], v[i + half]);
    }
    return v[0];
  }
  static float sum(const Floats& v) {
    return combined(v, [](float a, float b) { return a + b; });
  }
  static float largest(const Floats& v) {
    return combined(v, [](float a, float b) { return a > b ? a : b; });
  }
  static Floats sums(const Floats (&v)[kLanes]) {
    return each<Floats>([&](size_t i) { return sum(v[i]); });
  }
  static Floats maxima(const Floats (&v)[kLanes]) {
    return each<Floats>([&](size_t i) { return largest(v[i]); });
  }

  static int32_t rounded(float a) {
    return std::isnan(a) ? std::numeric_limits<int32_t>::min() : static_cast<int32_t>(std::nearbyint(a));
  }
  static Ints round(const Floats& a) {
    return each<Ints>([&](size_t i) { return rounded(a[i]); });
  }
  static Ints to_ints(const Floats& a) { return round(a); }
  static Floats to_floats(const Ints& a) {
    return each<Floats>([&](size_t i) { return static_cast<float>(a[i]); });
  }
  static Floats from_bits(const Ints& a) { return std::bit_cast<Floats>(a); }
  static Ints all_ints(int32_t value) {
    return each<Ints>([=](size_t) { return value; });
  }
  static Ints add(const Ints& a, const Ints& b) {
    return each<Ints>([&](size_t i) { return a[i] + b[i]; });
  }
  static Ints add(const Ints& a, int b) { return add(a, all_ints(b)); }
  static Ints sub(const Ints& a, const Ints& b) {
    return each<Ints>([&](size_t i) { return a[i] - b[i]; });
  }
  static Ints halve(const Ints& a) {
    return each<Ints>([&](size_t i) { return a[i] >> 1; });
  }
  static Ints shift_left(const Ints& a, int bits) {
    return each<Ints>([&](size_t i) { return static_cast<int32_t>(static_cast<uint32_t>(a[i]) << bits); });
  }
  static int32_t sum_ints(const Ints& a) {
    int32_t sum = 0;
    for (const int32_t number : a) sum += number;
    return sum;
  }

  static Ints load_ints(const std::byte* p) {
    Ints ints;
    std::memcpy(ints.data(), p, sizeof(ints));
    return ints;
  }
  static void store_bytes(int8_t* p, const Ints& a) {
    for (size_t i = 0; i < kCount; ++i) p[i] = static_cast<int8_t>(a[i]);
  }
  template <typename Function>
  static Ints each_byte(const Ints& a, Function function) {
    auto bytes = std::bit_cast<Bytes>(a);
    for (int8_t& byte : bytes) byte = static_cast<int8_t>(function(static_cast<uint8_t>(byte)));
    return std::bit_cast<Ints>(bytes);
  }
  static Ints low_nibbles(const Ints& a) {
    return each_byte(a, [](uint8_t byte) { return byte & 15; });
  }
  static Ints high_nibbles(const Ints& a) {
    return each_byte(a, [](uint8_t byte) { return byte >> 4; });
  }
  static Ints sixteen_bytes(const int8_t* p) {
    Bytes bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = p[i % 16];
    return std::bit_cast<Ints>(bytes);
  }
  static Ints look_up(const Ints& table, const Ints& nibbles) {
    const auto numbers = std::bit_cast<Bytes>(table);
    return each_byte(nibbles, [&](uint8_t nibble) { return numbers[nibble]; });
  }
  static Ints byte_weights(const Ints& a) { return a; }
  static Ints add_byte_products(const Ints& sums, const Ints& w, const Ints& x) {
    const auto weights = std::bit_cast<Bytes>(w);
    const auto inputs = std::bit_cast<Bytes>(x);
    Ints result = sums;
    for (size_t i = 0; i < weights.size(); ++i) result[i / 4] += weights[i] * inputs[i];
    return result;
  }
  static Ints begin_nibble_sums(int32_t start) { return all_ints(start); }
  static Ints add_nibble_products(const Ints& sums, const Ints& nibbles, const Ints& bytes) {
    return add_byte_products(sums, nibbles, bytes);
  }
  static Ints end_nibble_sums(const Ints& sums, int32_t) { return sums; }

  static uint16_t half(const uint8_t* p) {
    uint16_t bits;
    std::memcpy(&bits, p, sizeof(bits));
    return bits;
  }
  static Floats load_halves(const uint8_t* p) {
    return each<Floats>([=](size_t i) { return f16_to_f32(half(p + 2 * i)); });
  }
  static Floats load_bf16(const uint8_t* p) {
    return each<Floats>([=](size_t i) { return bf16_to_f32(half(p + 2 * i)); });
  }
  static Floats load_e4m3_halves(const uint8_t* p) {
    return each<Floats>([=](size_t i) { return e4m3_to_f32(p[i]) / 256; });
  }
  static void widen_e4m3(const uint8_t* p, float* out) {
    for (int i = 0; i < 16; i += kCount) store(out + i, load_e4m3_halves(p + i));
  }
  static Floats load_e4m3(const uint8_t* p) {
    return each<Floats>([=](size_t i) {
      return is_e4m3_nan(p[i]) ? std::numeric_limits<float>::quiet_NaN() : e4m3_to_f32(p[i]);
    });
  }
  static void store_e4m3(uint8_t* p, const Floats& v) {
    for (size_t i = 0; i < kCount; ++i) p[i] = f32_to_e4m3(v[i]);
  }
  static Ints signed_bytes(const uint8_t* p) {
    return each<Ints>([=](size_t i) { return static_cast<int8_t>(p[i]); });
  }
  static Floats all_half(const uint8_t* p) { return all(f16_to_f32(half(p))); }
  static void store_halves(uint8_t* p, const Floats& v) {
    const auto halves = each<std::array<uint16_t, kCount>>([&](size_t i) { return f32_to_f16(v[i]); });
    std::memcpy(p, halves.data(), sizeof(halves));
  }
  static void store_bf16(uint8_t* p, const Floats& v) {
    const auto halves = each<std::array<uint16_t, kCount>>([&](size_t i) { return f32_to_bf16(v[i]); });
    std::memcpy(p, halves.data(), sizeof(halves));
  }
};

}  // namespace outrider
