// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/tensor_kernels.h"

#include "device_kernels/emulated/entries.h"

namespace outrider::simt {
namespace {

OUTRIDER_TENSOR_KERNELS(OUTRIDER_EMULATED_FUNCTION)

constexpr EmulatedKernel kTensorKernels[] = {OUTRIDER_TENSOR_KERNELS(OUTRIDER_EMULATED_NAME)};

}  // namespace
}  // namespace outrider::simt

namespace outrider {

const simt::EmulatedKernel* OUTRIDER_KERNEL_LIST() { return simt::kTensorKernels; }

}  // namespace outrider
