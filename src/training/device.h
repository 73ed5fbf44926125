// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

#include "outrider/result.h"

namespace outrider::training {

// What --device names.
Result<at::Device> open_device(const std::string& name);

}  // namespace outrider::training
