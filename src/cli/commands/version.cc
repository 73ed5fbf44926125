// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "device_kernels/cuda_images.h"
#include "kernels/kernel_table.h"
#include "models/backend/device/make_backends.h"

namespace outrider {
namespace {

std::string gpu_text() {
  const FoundCuda& cuda = found_cuda();
  if (!cuda.device) return "none: " + cuda.problem;
  return fmt::format("{}, compute capability {}, kernels by CUDA {}.{}", cuda.device->model(),
                     cuda.device->capability().text(), kCudaVersion / 1000, kCudaVersion % 1000 / 10);
}

}  // namespace

std::string version_text() {
  constexpr std::string_view kCommit = OUTRIDER_COMMIT;
  return fmt::format("outrider {}\n{}kernels of this machine: {}\nGPU: {}", OUTRIDER_VERSION,
                     kCommit.empty() ? "" : fmt::format("commit {}\n", kCommit),
                     fmt::join(available_kernels(), ", "), gpu_text());
}

}  // namespace outrider
