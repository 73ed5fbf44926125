// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/delta_net.h"
#include "kernels/simd/inputs.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"
#include "kernels/simd/row_ops.h"

namespace outrider {

IsaOps avx2_ops() {
  return {.linear = simd::linear<Avx2>,
          .pack_inputs = simd::pack_inputs<Avx2>,
          .attention = simd::attention<Avx2>,
          .rms_norm = simd::rms_norm<Avx2>,
          .layer_norm = simd::layer_norm<Avx2>,
          .rope = simd::rope<Avx2>,
          .store_kv = simd::store_kv<Avx2>,
          .activate = simd::activate<Avx2>,
          .softcap = simd::softcap<Avx2>,
          .delta_steps = simd::delta_steps<Avx2>,
          .multiply_add = simd::multiply_add<Avx2>};
}

}  // namespace outrider
