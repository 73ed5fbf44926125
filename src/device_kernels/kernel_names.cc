// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/kernel_names.h"

#include "device_kernels/emulated_kernels.h"

namespace outrider {
namespace {

std::string emulate_launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape,
                           const EmulationOptions& options);

// In the order of KernelName: list after list.
#define OUTRIDER_KERNEL_INFO(name, Args, ...) {#name, sizeof(simt::Args), emulate_launch},
constexpr DeviceKernel kKernels[] = {
    OUTRIDER_ROW_KERNELS(OUTRIDER_KERNEL_INFO) OUTRIDER_PRODUCT_KERNELS(OUTRIDER_KERNEL_INFO)
        OUTRIDER_BLOCK_KERNELS(OUTRIDER_KERNEL_INFO) OUTRIDER_ATTENTION_KERNELS(OUTRIDER_KERNEL_INFO)
            OUTRIDER_CHOICE_KERNELS(OUTRIDER_KERNEL_INFO) OUTRIDER_TENSOR_KERNELS(OUTRIDER_KERNEL_INFO)};
#undef OUTRIDER_KERNEL_INFO

std::string emulate_launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape,
                           const EmulationOptions& options) {
  const auto name = static_cast<KernelName>(&kernel - kKernels);
  return simt::emulate(emulated_kernel(name), args, shape, options).first;
}

}  // namespace

const DeviceKernel& device_kernel(KernelName name) { return kKernels[static_cast<size_t>(name)]; }

simt::EmulatedKernel emulated_kernel(KernelName name) {
  static const EmulatedKernels kernels = emulated_kernels();
  return kernel_of(kernels, name);
}

simt::EmulatedKernel kernel_of(const EmulatedKernels& kernels, KernelName name) {
  const auto place = static_cast<size_t>(name), products = static_cast<size_t>(KernelName::kPackInputs),
             blocks = static_cast<size_t>(KernelName::kChooseExperts),
             attention = static_cast<size_t>(KernelName::kAttentionF32),
             choice = static_cast<size_t>(KernelName::kFindLargest),
             tensor = static_cast<size_t>(KernelName::kPackBf16Inputs);
  if (place >= tensor) return kernels.tensor[place - tensor];
  if (place >= choice) return kernels.choice[place - choice];
  if (place >= attention) return kernels.attention[place - attention];
  if (place >= blocks) return kernels.blocks[place - blocks];
  return place >= products ? kernels.products[place - products] : kernels.rows[place];
}

}  // namespace outrider
