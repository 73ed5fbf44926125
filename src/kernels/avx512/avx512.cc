// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/inputs.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/row_ops.h"

namespace outrider {

IsaOps avx512_ops() {
  return {simd::linear<Avx512>, simd::pack_inputs<Avx512>, simd::attention<Avx512>, simd::rms_norm<Avx512>,
          simd::rope<Avx512>,   simd::store_kv<Avx512>,    simd::swiglu<Avx512>};
}

}  // namespace outrider
