// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/row_kernels.h"

#include "device_kernels/cuda/entries.cuh"

OUTRIDER_ROW_KERNELS(OUTRIDER_CUDA_FUNCTION)
