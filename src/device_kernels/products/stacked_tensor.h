// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/products/stacked_products.h"
#include "device_kernels/products/tensor_products.h"

namespace outrider::simt {

SIMT int features_of(const TensorProductArgs& args) { return args.n; }

SIMT TensorProductArgs with_one_of(TensorProductArgs args, int matrix, int matrices) {
  args.weights = weights_of_one(args.weights, matrix, matrices);
  if (!args.scales.is_null()) args.scales = weights_of_one(args.scales, matrix, matrices);
  return args;
}

using StackedTensorArgs = StackedArgs<TensorProductArgs>;

}  // namespace outrider::simt
