// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "peaks.h"

namespace outrider {

int64_t multiply_add_avx2(int64_t rounds) {
  constexpr int kChains = 12;  // latency 4 times two units, and some to spare
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  __m256 x = _mm256_set1_ps(0.5F);
  for (int64_t round = 0; round < rounds; ++round) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, x, x);
    asm volatile("" : "+x"(x));
  }
  for (__m256& sum : sums) asm volatile("" : : "x"(sum));
  return rounds * kChains * 8 * 2;
}

}  // namespace outrider
