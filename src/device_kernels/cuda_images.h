// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/ as nvcc has compiled them, in the program. tools/check_device_code.py has read them.
#pragma once

#include <span>

#include "device/cuda_device.h"

namespace outrider {

// The version of CUDA that compiled them, 13000 for 13.0; 0: there was no nvcc.
extern const int kCudaVersion;

// Empty: there was no nvcc.
std::span<const CudaImage> cuda_images();

}  // namespace outrider
