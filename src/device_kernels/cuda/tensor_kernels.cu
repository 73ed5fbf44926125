// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/tensor_kernels.h"

#include "device_kernels/cuda/entries.cuh"

OUTRIDER_TENSOR_PRODUCT_KERNELS(OUTRIDER_CUDA_FUNCTION)
OUTRIDER_TENSOR_ATTENTION_KERNELS(OUTRIDER_CUDA_WIDE_FUNCTION)
