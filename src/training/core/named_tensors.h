// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

namespace outrider::training {

// Tensors in a fixed order by their names in checkpoints or model files. Copies share the tensors' memory.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace outrider::training
