// SPDX-License-Identifier: Apache-2.0
// A GPU for tests: the fake driver has one, which knows all kernels.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "device/cuda_device.h"
#include "device/fake_cuda_driver.h"
#include "device_kernels/kernel_names.h"

namespace outrider {

inline const DeviceKernel* kernel_of_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(KernelName::kNextStep); ++i) {
    const DeviceKernel& kernel = device_kernel(static_cast<KernelName>(i));
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

inline std::unique_ptr<CudaDevice> fake_gpu() {
  const CudaDriver driver = fake_cuda_driver();
  fake_cuda().kernel = kernel_of_name;
  const std::vector<CudaImage> images = {{.major = 9, .code = "code"}};
  return find_cuda_device(driver, images, 13000).device;
}

}  // namespace outrider
