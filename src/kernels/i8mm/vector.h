// SPDX-License-Identifier: Apache-2.0
// Unnamed namespace on purpose, see isa_ops.h.
#pragma once

#include "kernels/neon/vector.h"

namespace outrider {
namespace {

// NEON with products of two rows and two features, eight inputs of each.
struct I8mm : Neon {
  // Eight inputs of four features: of the first two, and of the last two.
  struct Eight {
    int8x16_t pairs[2];
  };
  static Eight eight(Ints first_four, Ints last_four) {
    return {{vreinterpretq_s8_s32(vzip1q_s32(first_four, last_four)),
             vreinterpretq_s8_s32(vzip2q_s32(first_four, last_four))}};
  }

  // Sums of two rows and four features.
  struct RowPair {
    int32x4_t sums[2];  // [pair of features][row][feature]
  };
  static RowPair no_sums() { return {{vdupq_n_s32(0), vdupq_n_s32(0)}}; }
  // `x` has eight inputs of the first row; the inputs of the second row lie `apart` bytes further on.
  static void add_products(RowPair& sums, const Eight& w, const int8_t* x, int64_t apart) {
    const int8x16_t rows = vcombine_s8(vld1_s8(x), vld1_s8(x + apart));
    for (int pair = 0; pair < 2; ++pair) sums.sums[pair] = vmmlaq_s32(sums.sums[pair], rows, w.pairs[pair]);
  }
  static Ints first_row(const RowPair& sums) {
    return vcombine_s32(vget_low_s32(sums.sums[0]), vget_low_s32(sums.sums[1]));
  }
  static Ints second_row(const RowPair& sums) {
    return vcombine_s32(vget_high_s32(sums.sums[0]), vget_high_s32(sums.sums[1]));
  }
};

}  // namespace
}  // namespace outrider
