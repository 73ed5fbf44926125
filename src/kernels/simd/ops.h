// SPDX-License-Identifier: Apache-2.0
// All operations on the vectors V of an instruction set.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/delta_net.h"
#include "kernels/simd/inputs.h"
#include "kernels/simd/linear.h"
#include "kernels/simd/peaks.h"
#include "kernels/simd/row_ops.h"

namespace outrider::simd {

template <typename V>
IsaOps ops() {
  return {.pack_inputs = {pack_inputs<V>},
          .linear = {linear<V>},
          .attention = {attention<V>},
          .rms_norm = {rms_norm<V>},
          .layer_norm = {layer_norm<V>},
          .rope = {rope<V>},
          .store_kv = store_kv<V>,
          .activate = {activate<V>},
          .softcap = {softcap<V>},
          .delta_steps = delta_steps<V>,
          .multiply_add = multiply_add<V>};
}

}  // namespace outrider::simd
