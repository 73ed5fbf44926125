// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

#include "outrider/result.h"

namespace outrider::training {

// The device called `name`: "cpu", or "cuda" for the first GPU. Errors, which mention `option`: another name,
// no GPU, or a libtorch without CUDA.
Result<at::Device> open_device(const std::string& option, const std::string& name);

// The type of matrix products by its name: "bf16", "f32", or "auto" for the faster one on that device. This
// is f32 on a CPU without bf16 instructions, where libtorch multiplies bf16 values one by one and rounds
// every sum.
at::ScalarType product_type(const std::string& name, const std::string& device);

}  // namespace outrider::training
