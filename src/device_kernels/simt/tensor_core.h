// SPDX-License-Identifier: Apache-2.0
// Tensor cores with 16-bit numbers, a part of the dialect (simt.h). They add the products of 16 features, 8
// rows and 16 inputs to c. See add_tensor_tile() for what lanes have, and what becomes of the sums.
#pragma once

#include "device_kernels/simt/bf16_bits.h"
#include "device_kernels/simt/simt.h"
#ifndef __CUDACC__
#include <cmath>

#include "device_kernels/simt/emulated_tensor_core.h"
#endif

namespace outrider::simt {

#ifdef __CUDACC__
SIMT void mma_bf16(float (&c)[4], const int (&a)[4], const int (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
SIMT void mma_f16(float (&c)[4], const int (&a)[4], const int (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Both bf16 numbers of a word times a power of two, rounded.
SIMT int multiply_bf16_pairs(int pairs, int exponent) {
  const int factor = (exponent + 127) << 7;
  int product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(product)
      : "r"(pairs), "r"(factor << 16 | factor), "r"(0x80008000));
  return product;
}
#else
SIMT_PART Lanes<int> multiply_bf16_pairs(const Lanes<int>& pairs, int exponent) {
  const Lanes<float> factor(std::ldexp(1.0F, exponent));
  const auto product = [&](const Lanes<int>& bits) { return bf16_bits_of(mul_rn(from_bits(bits), factor)); };
  return product(pairs << Lanes<int>(16)) | (product(pairs & Lanes<int>(-65536)) << Lanes<int>(16));
}
SIMT_PART void mma_bf16(Lanes<float> (&c)[4], const Lanes<int> (&a)[4], const Lanes<int> (&b)[2]) {
  add_tensor_tile<Bf16Format>({c[0].v, c[1].v, c[2].v, c[3].v}, {a[0].v, a[1].v, a[2].v, a[3].v},
                              {b[0].v, b[1].v});
}
SIMT_PART void mma_f16(Lanes<float> (&c)[4], const Lanes<int> (&a)[4], const Lanes<int> (&b)[2]) {
  add_tensor_tile<F16Format>({c[0].v, c[1].v, c[2].v, c[3].v}, {a[0].v, a[1].v, a[2].v, a[3].v},
                             {b[0].v, b[1].v});
}
#endif

}  // namespace outrider::simt
