// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "tensor/tensor_view.h"

namespace outrider::training {

// The numbers of a tensor of any type, f32 on the CPU.
at::Tensor tensor_values(const TensorView& view);

}  // namespace outrider::training
