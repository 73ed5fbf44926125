// SPDX-License-Identifier: Apache-2.0
// Loops that do nothing but multiply and add, for the share of the processor's peak that products reach. The
// constraint "x" is a register of vectors on x86-64 and on ARM.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

inline constexpr int kPeakChains =
    12;  // more than the latency times the units, and few enough for 16 registers

template <typename V>
int64_t multiply_add_floats(int64_t rounds) {
  typename V::Floats sums[kPeakChains];
  for (auto& sum : sums) sum = V::all(0);
  auto x = V::all(0.5F);
  for (int64_t round = 0; round < rounds; ++round) {
    for (auto& sum : sums) sum = V::multiply_add(x, x, sum);
    asm volatile("" : "+x"(x));
  }
  for (auto& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kPeakChains * V::kLanes * 2;
}

template <typename V>
int64_t multiply_add_bytes(int64_t rounds) {
  typename V::Ints sums[kPeakChains];
  for (auto& sum : sums) sum = V::all_ints(0);
  auto x = V::all_ints(0);
  for (int64_t round = 0; round < rounds; ++round) {
    for (auto& sum : sums) {
      asm volatile("" : "+x"(x));  // else all sums share one product
      sum = V::add_nibble_products(sum, x, x);
    }
  }
  for (auto& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kPeakChains * V::kLanes * 4 * 2;
}

template <typename V>
int64_t multiply_add(InputLayout inputs, int64_t rounds) {
  const bool is_f32 = inputs == InputLayout::kF32 || inputs == InputLayout::kF32Tiles;
  return is_f32 ? multiply_add_floats<V>(rounds) : multiply_add_bytes<V>(rounds);
}

}  // namespace outrider::simd
