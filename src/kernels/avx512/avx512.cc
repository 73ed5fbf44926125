// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/vector.h"
#include "kernels/isa_ops.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/delta_net.h"
#include "kernels/simd/inputs.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"
#include "kernels/simd/row_ops.h"

namespace outrider {

IsaOps avx512_ops() {
  return {.linear = simd::linear<Avx512>,
          .pack_inputs = simd::pack_inputs<Avx512>,
          .attention = simd::attention<Avx512>,
          .rms_norm = simd::rms_norm<Avx512>,
          .layer_norm = simd::layer_norm<Avx512>,
          .rope = simd::rope<Avx512>,
          .store_kv = simd::store_kv<Avx512>,
          .activate = simd::activate<Avx512>,
          .softcap = simd::softcap<Avx512>,
          .delta_steps = simd::delta_steps<Avx512>,
          .multiply_add = simd::multiply_add<Avx512>};
}

}  // namespace outrider
