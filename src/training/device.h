// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

#include "outrider/result.h"

namespace outrider::training {

// What `option` names: "cpu", or "cuda" for the first GPU. Error: another name, no GPU, or a libtorch without
// CUDA.
Result<at::Device> open_device(const std::string& option, const std::string& name);

}  // namespace outrider::training
