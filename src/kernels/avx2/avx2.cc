// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/inputs.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/row_ops.h"

namespace outrider {

IsaOps avx2_ops() {
  return {simd::linear<Avx2>, simd::pack_inputs<Avx2>, simd::attention<Avx2>, simd::rms_norm<Avx2>,
          simd::rope<Avx2>,   simd::store_kv<Avx2>,    simd::swiglu<Avx2>};
}

}  // namespace outrider
