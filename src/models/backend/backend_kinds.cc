// SPDX-License-Identifier: Apache-2.0
#include "models/backend/backend_kinds.h"

#include <algorithm>

#include "base/check.h"
#include "models/backend/device/make_backends.h"
#include "models/backend/host/host_backend.h"
#include "models/backend/split/split_backend.h"

namespace outrider {
namespace {

// All networks of a rank are on one device. Error: there is no usable GPU of that number.
Result<std::unique_ptr<LayerBackend>> make_cuda_backend(const ModelConfig& config,
                                                        const ModelOptions& options,
                                                        const LoadWeights& load) {
  const FoundCuda& cuda = found_cuda(options.device_number);
  if (!cuda.device) return resource_error("--device cuda: " + cuda.problem + "; or leave out --device");
  return make_placed_backend(*cuda.device, config, options, load);
}

Result<std::unique_ptr<LayerBackend>> make_emulated_backend(const ModelConfig& config,
                                                            const ModelOptions& options,
                                                            const LoadWeights& load) {
  return make_placed_backend(emulated_device(options.device_number), config, options, load);
}

}  // namespace

std::vector<BackendKind>& backend_kinds() {
  static std::vector<BackendKind> kinds = {
      {"cuda", make_cuda_backend},
      {"emulated", make_emulated_backend},
      {"cpu", make_host_backend},
  };
  return kinds;
}

Result<std::unique_ptr<LayerBackend>> make_backend(const ModelConfig& config, const ModelOptions& options,
                                                   const LoadWeights& load) {
  const std::vector<BackendKind>& kinds = backend_kinds();
  if (options.device.empty()) return kinds.back().make(config, options, load);
  const auto found = std::ranges::find(kinds, options.device, &BackendKind::name);
  OUTRIDER_CHECK(found != kinds.end());
  return found->make(config, options, load);
}

}  // namespace outrider
