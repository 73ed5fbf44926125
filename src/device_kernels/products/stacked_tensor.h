// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/products/stacked_products.h"
#include "device_kernels/products/tensor_products.h"

namespace outrider::simt {

SIMT int features_of(const TensorProductArgs& args) { return args.n; }

using StackedTensorArgs = StackedArgs<TensorProductArgs>;

}  // namespace outrider::simt
