// SPDX-License-Identifier: Apache-2.0
// The kernels of the profile cuda_tc, see row_kernels.h.
#pragma once

#include "device_kernels/tensor/tensor_products.h"

#define OUTRIDER_TENSOR_KERNELS(KERNEL)                                        \
  KERNEL(PackBf16Inputs, PackTensorInputsArgs, pack_tensor_inputs<TensorBf16>) \
  KERNEL(PackF16Inputs, PackTensorInputsArgs, pack_tensor_inputs<TensorF16>)   \
  KERNEL(FewRowsTensorBf16, TensorProductArgs, few_tensor_rows<TensorBf16>)    \
  KERNEL(FewRowsTensorF16, TensorProductArgs, few_tensor_rows<TensorF16>)      \
  KERNEL(ManyRowsTensorBf16, TensorProductArgs, many_tensor_rows<TensorBf16>)  \
  KERNEL(ManyRowsTensorF16, TensorProductArgs, many_tensor_rows<TensorF16>)
