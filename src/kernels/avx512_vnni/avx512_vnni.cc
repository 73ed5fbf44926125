// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512_vnni/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"

namespace outrider {
// All bits equal avx512's: sums of integers are exact in any order.
IsaOps avx512_vnni_ops() {
  IsaOps ops = avx512_ops();
  ops.linear = {simd::linear<Avx512Vnni>};
  ops.multiply_add = simd::multiply_add<Avx512Vnni>;
  return ops;
}

}  // namespace outrider
