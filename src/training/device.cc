// SPDX-License-Identifier: Apache-2.0
#include "training/device.h"

#include <ATen/ATen.h>

namespace outrider::training {

Result<at::Device> open_device(const std::string& option, const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "cuda") return usage_error(option + ": cpu or cuda is expected, found " + name);
  if (at::hasCUDA()) return at::Device(at::kCUDA, 0);
  if (!at::Context::hasCUDART())
    return usage_error(option + " cuda: this libtorch was built without CUDA; use cpu");
  return resource_error(option + " cuda: no GPU was found, or no driver for it (nvidia-smi tells); use cpu");
}

}  // namespace outrider::training
