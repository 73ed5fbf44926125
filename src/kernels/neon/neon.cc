// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa_ops.h"
#include "kernels/neon/vector.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/delta_net.h"
#include "kernels/simd/inputs.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"
#include "kernels/simd/row_ops.h"

namespace outrider {

IsaOps neon_ops() {
  return {.linear = simd::linear<Neon>,
          .pack_inputs = simd::pack_inputs<Neon>,
          .attention = simd::attention<Neon>,
          .rms_norm = simd::rms_norm<Neon>,
          .layer_norm = simd::layer_norm<Neon>,
          .rope = simd::rope<Neon>,
          .store_kv = simd::store_kv<Neon>,
          .activate = simd::activate<Neon>,
          .softcap = simd::softcap<Neon>,
          .delta_steps = simd::delta_steps<Neon>,
          .multiply_add = simd::multiply_add<Neon>};
}

}  // namespace outrider
