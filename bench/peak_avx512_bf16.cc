// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "peaks.h"

namespace outrider {

int64_t multiply_add_avx512_bf16(int64_t rounds) {
  constexpr int kChains = 16;
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512i x = _mm512_set1_epi32(0x3F003F00);  // halves
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)x);
    asm volatile("" : "+v"(x));
  }
  for (__m512& sum : sums) asm volatile("" : : "v"(sum));
  return rounds * kChains * 32 * 2;
}

}  // namespace outrider
