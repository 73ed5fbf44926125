// SPDX-License-Identifier: Apache-2.0
// Mistakes in device code, for tools/check_device_code.py, which must refuse each of these kernels.
#include "device_kernels/simt/simt.h"

extern "C" __global__ void planted_contraction(float* x, float y) { x[threadIdx.x] = x[threadIdx.x] * y + 1.0F; }

extern "C" __global__ void planted_atomic(float* x, float y) { atomicAdd(x, y); }

extern "C" __global__ void planted_approximation(float* x) { x[threadIdx.x] = __expf(x[threadIdx.x]); }

extern "C" __global__ void planted_double(float* x, double y) {
  x[threadIdx.x] = static_cast<float>(static_cast<double>(x[threadIdx.x]) * y + 1.0);
}

extern "C" __global__ void planted_maximum(float* x, float y) { x[threadIdx.x] = fmaxf(x[threadIdx.x], y); }
