// SPDX-License-Identifier: Apache-2.0
// Sums of products on a tensor core of Hopper, bit by bit, as MMA-Sim (arXiv 2511.10909) found them. A sum
// and its 16 products are cut to 25 bits below the largest of their exponents. They are added exactly, and
// the result is cut to f32. Nothing is rounded.
#pragma once

#include <cstdint>
#include <cstring>

namespace outrider::simt {

// Bits of the fraction of a type, and how far its stored exponents are above their values.
struct Bf16Format {
  static constexpr int kFraction = 7, kBias = 127;
};
struct F16Format {
  static constexpr int kFraction = 10, kBias = 15;
};

inline constexpr int kTensorDepth = 16;         // inputs of a tile
inline constexpr int kTensorBits = 25;          // that a sum keeps below the largest exponent
inline constexpr int kNoExponent = -126 - 400;  // of zero

// The numbers that are multiplied with each other: their fractions as integers with a sign, and exponents.
struct TensorNumbers {
  int32_t size[kTensorDepth], sign[kTensorDepth], exponent[kTensorDepth];
  bool is_finite = true;
};

template <typename Format>
[[gnu::always_inline]] inline void put_number(uint32_t bits, int i, TensorNumbers& numbers) {
  constexpr int kLargest = (1 << (15 - Format::kFraction)) - 1;
  const auto exponent = static_cast<int>(bits >> Format::kFraction & kLargest);
  const auto fraction = static_cast<int32_t>(bits & ((1U << Format::kFraction) - 1));
  numbers.size[i] = exponent == 0 ? fraction : fraction | 1 << Format::kFraction;
  numbers.sign[i] = -static_cast<int32_t>(bits >> 15 & 1);
  numbers.exponent[i] = (exponent == 0 ? 1 : exponent) - Format::kBias;
  numbers.is_finite = numbers.is_finite && exponent != kLargest;
}

// A finite number of f32: size * 2^(exponent - 23).
struct AddedNumber {
  uint32_t size;
  bool is_negative;
  int exponent;
};
[[gnu::always_inline]] inline AddedNumber added_number(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 23 & 255);
  const uint32_t fraction = bits & 0x7FFFFF;
  const uint32_t size = exponent == 0 ? fraction : fraction | 0x800000;
  return {size, bits >> 31 != 0, size == 0 ? kNoExponent : (exponent == 0 ? 1 : exponent) - 127};
}

// sum * 2^(top - 25), cut to f32. Sums beyond f32 are infinite.
[[gnu::always_inline]] inline float cut_sum(int64_t sum, int top) {
  if (sum == 0) return 0.0F;
  const uint32_t sign = sum < 0 ? 0x80000000U : 0;
  auto size = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  const int highest = 63 - __builtin_clzll(size);  // bit
  int exponent = highest + top - kTensorBits;
  uint32_t bits = 0x7F800000;
  if (exponent <= 127) {
    const bool is_normal = exponent >= -126;
    const int drop = is_normal ? highest - 23 : -149 - (top - kTensorBits);
    size = drop >= 64 ? 0 : drop >= 0 ? size >> drop : size << -drop;
    bits = static_cast<uint32_t>(size) + (is_normal ? static_cast<uint32_t>(exponent + 126) << 23 : 0);
  }
  bits |= sign;
  float number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

// A sum with infinities or NaN, as f32 has it.
template <typename Format>
[[gnu::noinline, maybe_unused]] static float sum_of_any(const uint16_t* a, const uint16_t* b, float sum) {
  constexpr uint32_t kRest = (1U << (15 - Format::kFraction)) - 1;
  const auto widened = [](uint16_t bits) {  // with its sign, and finite numbers as 0 or 1
    const uint32_t exponent = static_cast<uint32_t>(bits) >> Format::kFraction & kRest;
    const uint32_t fraction = bits & ((1U << Format::kFraction) - 1);
    if (exponent != kRest) return (bits & 0x7FFF) == 0 ? 0.0F : (bits & 0x8000) != 0 ? -1.0F : 1.0F;
    if (fraction != 0) return __builtin_nanf("");
    return (bits & 0x8000) != 0 ? -__builtin_huge_valf() : __builtin_huge_valf();
  };
  float result = sum - sum == 0.0F ? 0.0F : sum;
  for (int i = 0; i < kTensorDepth; ++i) {
    const float product = widened(a[i]) * widened(b[i]);
    result += product - product == 0.0F ? 0.0F : product;
  }
  return result;
}

template <typename Format>
[[gnu::always_inline]] inline float sum_of_products(const TensorNumbers& a, const TensorNumbers& b,
                                                    float sum) {
  // Products have 2 * kFraction bits below their exponent.
  constexpr int kShift = kTensorBits - 2 * Format::kFraction;
  uint32_t bits;
  std::memcpy(&bits, &sum, sizeof(bits));
  const AddedNumber added = added_number(bits);
  int32_t products[kTensorDepth], exponents[kTensorDepth], top = added.exponent;
  for (int i = 0; i < kTensorDepth; ++i) {
    products[i] = a.size[i] * b.size[i];
    const int32_t exponent = a.exponent[i] + b.exponent[i];
    exponents[i] = products[i] == 0 ? kNoExponent : exponent;
    top = exponents[i] > top ? exponents[i] : top;
  }
  uint32_t positive = 0, negative = 0;  // at most 16 * 2^27, and 2^26
  for (int i = 0; i < kTensorDepth; ++i) {
    const int32_t below = top - exponents[i], cut = below > 31 ? 31 : below;
    const uint32_t part = static_cast<uint32_t>(products[i]) << kShift >> cut;
    const auto is_negative = static_cast<uint32_t>(a.sign[i] ^ b.sign[i]);
    positive += part & ~is_negative;
    negative += part & is_negative;
  }
  const int below = top - added.exponent;
  const uint32_t part = added.size << (kTensorBits - 23) >> (below > 31 ? 31 : below);
  const int64_t all = static_cast<int64_t>(positive) - negative;
  return cut_sum(added.is_negative ? all - part : all + part, top);
}

// Sums of a tile of 16 features and 8 rows over 16 inputs. Registers are as in mma_s8(), with two numbers of
// 16 bits in a word. Lane 4g + t has inputs 2t and 2t + 1 of features g (a[0]) and g + 8 (a[1]) and of row g
// (b[0]), and the inputs 8 further on (a[2], a[3], b[1]).
template <typename Format>
[[gnu::always_inline]] inline void add_tensor_tile(float* const (&c)[4], const int32_t* const (&a)[4],
                                                   const int32_t* const (&b)[2]) {
  uint16_t features[16][kTensorDepth], rows[8][kTensorDepth];
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int place = lane % 4 * 2 + i % 2 + i / 2 * 8, word = i / 2;
      const int shift = i % 2 * 16;
      features[lane / 4][place] = static_cast<uint16_t>(static_cast<uint32_t>(a[2 * word][lane]) >> shift);
      features[lane / 4 + 8][place] =
          static_cast<uint16_t>(static_cast<uint32_t>(a[2 * word + 1][lane]) >> shift);
      rows[lane / 4][place] = static_cast<uint16_t>(static_cast<uint32_t>(b[word][lane]) >> shift);
    }
  }
  TensorNumbers of_features[16], of_rows[8];
  for (int f = 0; f < 16; ++f)
    for (int i = 0; i < kTensorDepth; ++i) put_number<Format>(features[f][i], i, of_features[f]);
  for (int r = 0; r < 8; ++r)
    for (int i = 0; i < kTensorDepth; ++i) put_number<Format>(rows[r][i], i, of_rows[r]);
  for (int f = 0; f < 16; ++f) {
    for (int r = 0; r < 8; ++r) {
      float& sum = c[f / 8 * 2 + r % 2][f % 8 * 4 + r / 2];
      const bool is_finite = of_features[f].is_finite && of_rows[r].is_finite && sum - sum == 0.0F;
      sum = is_finite ? sum_of_products<Format>(of_features[f], of_rows[r], sum)
                      : sum_of_any<Format>(features[f], rows[r], sum);
    }
  }
}

}  // namespace outrider::simt
