// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

#include "outrider/result.h"

namespace outrider::training {

// What `option` names: "cpu", or "cuda" for the first GPU. Error: another name, no GPU, or a libtorch without
// CUDA.
Result<at::Device> open_device(const std::string& option, const std::string& name);

// The type of matrix products that `name` asks for: "bf16", "f32", or "auto", the faster one on that device.
// That is f32 on a CPU without instructions for bf16: there libtorch multiplies bf16 one by one and rounds
// every sum.
at::ScalarType product_type(const std::string& name, const std::string& device);

}  // namespace outrider::training
