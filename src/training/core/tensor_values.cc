// SPDX-License-Identifier: Apache-2.0
#include "training/core/tensor_values.h"

#include <ATen/ATen.h>

#include <vector>

#include "kernels/quants.h"

namespace outrider::training {

at::Tensor tensor_values(const TensorView& view) {
  at::Tensor values = at::empty(view.shape, at::kFloat);
  std::vector<std::byte> made;
  for (int64_t row = 0; row < view.rows(); ++row)
    dequantize_row(view.dtype, view.row(row, made), values.data_ptr<float>() + row * view.cols(),
                   view.cols());
  return values;
}

}  // namespace outrider::training
