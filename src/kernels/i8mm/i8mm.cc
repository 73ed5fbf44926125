// SPDX-License-Identifier: Apache-2.0
#include "kernels/i8mm/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"

namespace outrider {
namespace {

// Row pairs that are only multiplied, see simd/peaks.h.
int64_t multiply_add(InputLayout inputs, int64_t rounds) {
  if (inputs == InputLayout::kF32 || inputs == InputLayout::kF32Tiles)
    return simd::multiply_add_floats<I8mm>(rounds);
  int32x4_t sums[simd::kPeakChains];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  int8x16_t x = vdupq_n_s8(0);
  for (int64_t round = 0; round < rounds; ++round) {
    for (int32x4_t& sum : sums) sum = vmmlaq_s32(sum, x, x);
    asm volatile("" : "+x"(x));
  }
  for (int32x4_t& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * simd::kPeakChains * 2 * 2 * 8 * 2;  // rows, features, inputs; to multiply and to add
}

}  // namespace

// All bits equal neon's: sums of integers are exact in any order.
IsaOps i8mm_ops() {
  IsaOps ops = neon_ops();
  ops.linear = {simd::linear<I8mm>};
  ops.multiply_add = multiply_add;
  return ops;
}

}  // namespace outrider
