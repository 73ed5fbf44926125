// SPDX-License-Identifier: Apache-2.0
// Makes the kernels of a list functions that a device can be told to run.
#pragma once

#include "device_kernels/simt/simt.h"

using namespace outrider::simt;

extern __shared__ __align__(16) char outrider_shared_memory[];

#define OUTRIDER_CUDA_ENTRY(kThreads, kBlocks, name, Args, ...)                      \
  extern "C" __global__ void __launch_bounds__(kThreads, kBlocks)                    \
      outrider_##name(const __grid_constant__ Args args) {                           \
    __VA_ARGS__(Block{outrider_shared_memory}, args);                                \
  }
// At most 256 threads, eight warps; two blocks share a multiprocessor.
#define OUTRIDER_CUDA_FUNCTION(name, Args, ...) OUTRIDER_CUDA_ENTRY(256, 2, name, Args, __VA_ARGS__)
// Two warps with more registers each; four blocks share a multiprocessor.
#define OUTRIDER_CUDA_WIDE_FUNCTION(name, Args, ...) OUTRIDER_CUDA_ENTRY(64, 4, name, Args, __VA_ARGS__)
