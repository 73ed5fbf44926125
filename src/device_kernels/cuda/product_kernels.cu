// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/product_kernels.h"

#include "device_kernels/cuda/entries.cuh"

OUTRIDER_PRODUCT_KERNELS(OUTRIDER_CUDA_FUNCTION)
