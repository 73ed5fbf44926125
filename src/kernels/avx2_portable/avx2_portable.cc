// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/vector.h"
#include "kernels/simd/attention.h"

namespace outrider {
namespace {

// AVX2 with the sums of 16 lanes.
struct Avx2Portable : Avx2 {
  static constexpr int kScoreChains = simd::kSumChains;
};

}  // namespace

IsaOps avx2_portable_ops() {
  IsaOps ops = avx2_ops();
  ops.attention = {simd::attention<Avx2Portable>};
  return ops;
}

}  // namespace outrider
