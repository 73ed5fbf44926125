// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/block_kernels.h"

#include "device_kernels/emulated/entries.h"

namespace outrider::simt {
namespace {

OUTRIDER_BLOCK_KERNELS(OUTRIDER_EMULATED_FUNCTION)

constexpr EmulatedKernel kBlockKernels[] = {OUTRIDER_BLOCK_KERNELS(OUTRIDER_EMULATED_NAME)};

}  // namespace
}  // namespace outrider::simt

namespace outrider {

const simt::EmulatedKernel* OUTRIDER_KERNEL_LIST() { return simt::kBlockKernels; }

}  // namespace outrider
