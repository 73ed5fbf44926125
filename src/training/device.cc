// SPDX-License-Identifier: Apache-2.0
#include "training/device.h"

#include <ATen/ATen.h>

namespace outrider::training {

Result<at::Device> open_device(const std::string& name) {
  if (name == "cpu") return at::Device(at::kCPU);
  if (name != "cuda") return usage_error("--device cpu or cuda is expected, found " + name);
  if (!at::hasCUDA())
    return usage_error("--device cuda: this libtorch was built without CUDA; use --device cpu");
  return at::Device(at::kCUDA);
}

}  // namespace outrider::training
