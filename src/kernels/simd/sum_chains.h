// SPDX-License-Identifier: Apache-2.0
// The order of f32 sums. Number i belongs to chain i % kSumChains; chains i and i + 8 are added first, then i
// and i + 4, and so on. The order does not depend on the size of a vector, so tables of vectors have the same
// bits; only scores of attention have V::kScoreChains.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

inline constexpr int kSumChains = 16;

// Vectors that hold the chains of one sum.
template <typename V>
inline constexpr int kChainVectors = kSumChains / V::kLanes;

// Adds the chains down to one vector, which V::sum() finishes.
template <typename V, int kVectors>
typename V::Floats fold_chains(const typename V::Floats (&chains)[kVectors]) {
  static_assert(kVectors == 1 || kVectors == 2 || kVectors == 4);
  if constexpr (kVectors == 1) {
    return chains[0];
  } else if constexpr (kVectors == 2) {
    return V::add(chains[0], chains[1]);
  } else {
    return V::add(V::add(chains[0], chains[2]), V::add(chains[1], chains[3]));
  }
}

template <typename V, int kVectors>
float sum_chains(const typename V::Floats (&chains)[kVectors]) {
  return V::sum(fold_chains<V, kVectors>(chains));
}

// The next numbers of a row that has `left` of them, and zeros.
template <typename V>
typename V::Floats load_left(const float* x, int64_t left) {
  if (left <= 0) return V::all(0);
  return V::load_first(x, left < V::kLanes ? left : V::kLanes);
}

}  // namespace outrider::simd
