// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/block_kernels.h"

#include "device_kernels/cuda/entries.cuh"

OUTRIDER_BLOCK_KERNELS(OUTRIDER_CUDA_FUNCTION)
