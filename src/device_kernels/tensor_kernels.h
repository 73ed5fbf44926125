// SPDX-License-Identifier: Apache-2.0
// The kernels of the profile cuda_tc, see row_kernels.h.
#pragma once

#include "device_kernels/attention/tensor_attention.h"
#include "device_kernels/products/look_up_tensor.h"
#include "device_kernels/products/stacked_tensor.h"
#include "device_kernels/products/tensor_products.h"

#define OUTRIDER_TENSOR_PRODUCT_KERNELS(KERNEL)                                          \
  KERNEL(PackBf16Inputs, PackTensorInputsArgs, pack_tensor_inputs<TensorBf16>)           \
  KERNEL(PackF16Inputs, PackTensorInputsArgs, pack_tensor_inputs<TensorF16>)             \
  KERNEL(FewRowsTensorBf16, TensorProductArgs, few_tensor_rows<TensorBf16>)              \
  KERNEL(FewRowsTensorF16, TensorProductArgs, few_tensor_rows<TensorF16>)                \
  KERNEL(FewRowsTensorF8, TensorProductArgs, few_tensor_rows<TensorF8>)                  \
  KERNEL(ManyRowsTensorBf16, TensorProductArgs, many_tensor_rows<TensorBf16>)            \
  KERNEL(ManyRowsTensorF16, TensorProductArgs, many_tensor_rows<TensorF16>)              \
  KERNEL(ManyRowsTensorF8, TensorProductArgs, many_tensor_rows<TensorF8>)                \
  KERNEL(StackedRowsTensorBf16, StackedTensorArgs, stacked<few_tensor_rows<TensorBf16>>) \
  KERNEL(StackedRowsTensorF16, StackedTensorArgs, stacked<few_tensor_rows<TensorF16>>)   \
  KERNEL(StackedRowsTensorF8, StackedTensorArgs, stacked<few_tensor_rows<TensorF8>>)     \
  KERNEL(LookUpTensorBf16, TensorTableArgs, look_up_tensor<TensorBf16>)                  \
  KERNEL(LookUpTensorF16, TensorTableArgs, look_up_tensor<TensorF16>)

// A block has kTileWarps warps.
#define OUTRIDER_TENSOR_ATTENTION_KERNELS(KERNEL)                              \
  KERNEL(TensorAttentionBf16, AttentionBf16Args, tensor_attention<CachedBf16>) \
  KERNEL(TensorAttentionF16, AttentionF16Args, tensor_attention<CachedF16>)    \
  KERNEL(TensorAttentionE4m3, AttentionE4m3Args, tensor_attention<CachedE4m3>) \
  KERNEL(TensorAttentionQ8, AttentionQ8Args, tensor_attention<CachedQ8>)

#define OUTRIDER_TENSOR_KERNELS(KERNEL)   \
  OUTRIDER_TENSOR_PRODUCT_KERNELS(KERNEL) \
  OUTRIDER_TENSOR_ATTENTION_KERNELS(KERNEL)
