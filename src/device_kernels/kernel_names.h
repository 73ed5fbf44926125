// SPDX-License-Identifier: Apache-2.0
// All kernels by name, for code that launches them.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "device/device.h"
#include "device_kernels/attention_kernels.h"
#include "device_kernels/block_kernels.h"
#include "device_kernels/choice_kernels.h"
#include "device_kernels/product_kernels.h"
#include "device_kernels/row_kernels.h"
#include "device_kernels/simt/emulator.h"
#include "device_kernels/tensor_kernels.h"

namespace outrider {

#define OUTRIDER_KERNEL_NAME(name, ...) k##name,
enum class KernelName : uint8_t {
  OUTRIDER_ROW_KERNELS(OUTRIDER_KERNEL_NAME) OUTRIDER_PRODUCT_KERNELS(OUTRIDER_KERNEL_NAME)
      OUTRIDER_BLOCK_KERNELS(OUTRIDER_KERNEL_NAME) OUTRIDER_ATTENTION_KERNELS(OUTRIDER_KERNEL_NAME)
          OUTRIDER_CHOICE_KERNELS(OUTRIDER_KERNEL_NAME) OUTRIDER_TENSOR_KERNELS(OUTRIDER_KERNEL_NAME)
};
#undef OUTRIDER_KERNEL_NAME

const DeviceKernel& device_kernel(KernelName name);

// The kernel as this processor runs it fastest.
simt::EmulatedKernel emulated_kernel(KernelName name);
// The kernel for one instruction set.
struct EmulatedKernels;
simt::EmulatedKernel kernel_of(const EmulatedKernels& kernels, KernelName name);

// Arguments of the kernel's own type; anything else ends the program.
template <typename Args>
simt::EmulationReport emulate(KernelName name, const Args& args, const LaunchShape& shape,
                              const EmulationOptions& options = {}) {
  OUTRIDER_CHECK(sizeof(args) == device_kernel(name).args_bytes);
  return simt::emulate(emulated_kernel(name), &args, shape, options);
}

}  // namespace outrider
