// SPDX-License-Identifier: Apache-2.0
// Makes the kernels of a list functions that a device can be told to run.
#pragma once

#include "device_kernels/simt/simt.h"

using namespace outrider::simt;

extern __shared__ __align__(16) char outrider_shared_memory[];

// At most 256 threads, eight warps; two blocks share a multiprocessor.
#define OUTRIDER_CUDA_FUNCTION(name, Args, ...)                                                          \
  extern "C" __global__ void __launch_bounds__(256, 2) outrider_##name(const __grid_constant__ Args args) { \
    __VA_ARGS__(Block{outrider_shared_memory}, args);                                                    \
  }
