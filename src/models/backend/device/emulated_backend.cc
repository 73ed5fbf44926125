// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/emulated_backend.h"

#include <utility>

#include "device/emulated_device.h"
#include "models/backend/device/device_backend.h"

namespace outrider {
namespace {

// Whether a table has the arithmetic of devices.
bool is_portable(std::string_view kernels) { return kernels == "avx2_portable" || kernels == "avx512"; }

}  // namespace

std::string part_without_kernels(const ModelConfig& config) {
  for (const LayerTraits& layer : config.listed_traits(config.layer_count)) {
    if (layer.kind != &kAttentionKind) return std::string(layer.kind->name);
    if (layer.mlp != &kDenseMlpKind) return std::string(layer.mlp->name);
  }
  return {};
}

Result<std::unique_ptr<LayerBackend>> make_device_backend(Device& device, const ModelConfig& config,
                                                          const ModelOptions& options,
                                                          const LoadWeights& load) {
  const std::string device_name = "the " + std::string(device.name()) + " device";
  if (!is_portable(options.kernels->name)) {
    return usage_error(device_name + " has the arithmetic of the tables avx2_portable and avx512, found " +
                       std::string(options.kernels->name) + "; choose one with --kernels");
  }
  if (const std::string part = part_without_kernels(config); !part.empty()) {
    return usage_error(device_name + " has no kernels for " + part + " layers, which this " + config.family +
                       " model has; leave out --device");
  }
  if (!options.part.is_whole() || options.streams_layers)
    return usage_error(device_name + " needs the whole network; leave out ranks and --memory");
  OUTRIDER_TRY(DecoderWeights weights, load());
  return std::unique_ptr<LayerBackend>(
      std::make_unique<DeviceBackend>(device, config, options, std::move(weights)));
}

Result<const KernelTable*> select_device_kernels() {
  auto table = select_kernels("avx512");
  return table.ok() ? table : select_kernels("avx2_portable");
}

Result<std::unique_ptr<LayerBackend>> make_emulated_backend(const ModelConfig& config,
                                                            const ModelOptions& options,
                                                            const LoadWeights& load) {
  static EmulatedDevice device({});
  return make_device_backend(device, config, options, load);
}

}  // namespace outrider
