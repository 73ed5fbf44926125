// SPDX-License-Identifier: Apache-2.0
// The emulated kernels for the instruction sets of this architecture. All have equal bits.
#pragma once

#include <vector>

#include "device_kernels/simt/emulator.h"

namespace outrider {

// In the order of the lists of kernels.
struct EmulatedKernels {
  const simt::EmulatedKernel* rows;
  const simt::EmulatedKernel* products;
  const simt::EmulatedKernel* blocks;
  const simt::EmulatedKernel* attention;
  const simt::EmulatedKernel* choice;
  const simt::EmulatedKernel* tensor;
};

const simt::EmulatedKernel* plain_row_kernels();
const simt::EmulatedKernel* plain_product_kernels();
const simt::EmulatedKernel* plain_block_kernels();
const simt::EmulatedKernel* plain_attention_kernels();
const simt::EmulatedKernel* plain_choice_kernels();
const simt::EmulatedKernel* plain_tensor_kernels();
const simt::EmulatedKernel* avx2_row_kernels();
const simt::EmulatedKernel* avx2_product_kernels();
const simt::EmulatedKernel* avx2_block_kernels();
const simt::EmulatedKernel* avx2_attention_kernels();
const simt::EmulatedKernel* avx2_choice_kernels();
const simt::EmulatedKernel* avx2_tensor_kernels();

// The kernels that this processor runs, fastest last.
std::vector<EmulatedKernels> all_emulated_kernels();
// The last of them.
EmulatedKernels emulated_kernels();

}  // namespace outrider
