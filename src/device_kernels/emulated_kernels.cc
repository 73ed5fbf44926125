// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/emulated_kernels.h"

#include "platform/cpu_features.h"

namespace outrider {

EmulatedKernels emulated_kernels() {
#if defined(__x86_64__)
  const CpuFeatures& cpu = cpu_features();
  if (cpu.avx512_refusal.empty())
    return {avx512_row_kernels(), avx512_product_kernels(), avx512_attention_kernels()};
  if (cpu.avx2_refusal.empty()) return {avx2_row_kernels(), avx2_product_kernels(), avx2_attention_kernels()};
#endif
  return {plain_row_kernels(), plain_product_kernels(), plain_attention_kernels()};
}

}  // namespace outrider
