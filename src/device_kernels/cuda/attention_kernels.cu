// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/attention_kernels.h"

#include "device_kernels/cuda/entries.cuh"

OUTRIDER_ATTENTION_KERNELS(OUTRIDER_CUDA_FUNCTION)
