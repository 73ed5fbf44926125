// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit codes where one instruction multiplies two rows with two features, eight inputs of each.
// The sums equal the products' one by one.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

// Whether a processor multiplies so many rows in pairs.
template <typename V, int kRows>
inline constexpr bool kInPairs = kRows % 2 == 0 && requires {
  typename V::RowPair;
};

// Sums of kRows rows and kVectors vectors of features.
template <typename V, int kRows, int kVectors>
struct PairSums {
  typename V::RowPair pairs[kVectors][kRows / 2];

  void clear() {
    for (auto& of_vector : pairs) {
      for (auto& pair : of_vector) pair = V::no_sums();
    }
  }
  // `x` has the inputs of the first row; the inputs of the next one lie `apart` bytes further on.
  void add(const typename V::Eight (&w)[kVectors], const int8_t* x, int64_t apart) {
    for (int r = 0; r < kRows; r += 2) {
      for (int v = 0; v < kVectors; ++v) V::add_products(pairs[v][r / 2], w[v], x + r * apart, apart);
    }
  }
  void add_to(typename V::Ints (&sums)[kVectors][kRows]) const {
    for (int v = 0; v < kVectors; ++v) {
      for (int r = 0; r < kRows; r += 2) {
        sums[v][r] = V::add(sums[v][r], V::first_row(pairs[v][r / 2]));
        sums[v][r + 1] = V::add(sums[v][r + 1], V::second_row(pairs[v][r / 2]));
      }
    }
  }
};

}  // namespace outrider::simd
