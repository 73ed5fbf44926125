// SPDX-License-Identifier: Apache-2.0
#include "training/core/device.h"

#include <ATen/ATen.h>

#include "platform/cpu_features.h"

namespace outrider::training {

Result<at::Device> open_device(const std::string& option, const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "cuda") return usage_error(option + ": cpu or cuda is expected, found " + name);
  if (at::hasCUDA()) return at::Device(at::kCUDA, 0);
  if (!at::Context::hasCUDART())
    return usage_error(option + " cuda: this libtorch was built without CUDA; use cpu");
  return resource_error(option + " cuda: no GPU was found, or no driver for it (nvidia-smi tells); use cpu");
}

at::ScalarType product_type(const std::string& name, const std::string& device) {
  const bool has_bf16 = device != "cpu" || cpu_features().avx512_bf16_refusal.empty();
  return name == "bf16" || (name == "auto" && has_bf16) ? at::kBFloat16 : at::kFloat;
}

}  // namespace outrider::training
