// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/emulated_kernels.h"

#include "platform/cpu_features.h"

namespace outrider {

std::vector<EmulatedKernels> all_emulated_kernels() {
  std::vector<EmulatedKernels> all = {{plain_row_kernels(), plain_product_kernels(), plain_block_kernels(),
                                       plain_attention_kernels(), plain_choice_kernels(),
                                       plain_tensor_kernels()}};
#ifdef OUTRIDER_EMULATED_BY_VECTORS
  if (cpu_features().avx2_refusal.empty())
    all.push_back({avx2_row_kernels(), avx2_product_kernels(), avx2_block_kernels(), avx2_attention_kernels(),
                   avx2_choice_kernels(), avx2_tensor_kernels()});
#endif
  return all;
}

EmulatedKernels emulated_kernels() { return all_emulated_kernels().back(); }

}  // namespace outrider
