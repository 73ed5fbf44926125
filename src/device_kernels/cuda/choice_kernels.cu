// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/choice_kernels.h"

#include "device_kernels/cuda/entries.cuh"

OUTRIDER_CHOICE_KERNELS(OUTRIDER_CUDA_FUNCTION)
