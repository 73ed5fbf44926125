// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/make_backends.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "device/emulated_device.h"
#include "device_kernels/cuda_images.h"
#include "device_kernels/products/stored_codes.h"
#include "models/backend/device/device_backend.h"

namespace outrider {
namespace {

std::string megabytes(int64_t bytes) { return std::to_string(bytes / 1'000'000) + " MB"; }

Error memory_error(const Device& device, std::string_view device_name, int64_t needed) {
  return resource_error(std::string(device_name) + " has " + megabytes(device.free_bytes().value_or(0)) +
                        " free, and the weights need " + megabytes(needed + 999'999) +
                        "; choose a smaller model or weight type, or leave out --device");
}

// Whether a device can have the matrices of these projections one after the other.
bool are_alike(const std::vector<const Projection*>& stack) {
  const auto is_alike = [](const PackedMatrix& a, const PackedMatrix& b) {
    return a.layout == b.layout && a.dtype == b.dtype && a.n == b.n && a.k == b.k;
  };
  return std::ranges::all_of(stack, [&](const Projection* projection) {
    return std::ranges::equal(projection->parts, stack.front()->parts, is_alike);
  });
}

}  // namespace

Result<std::unique_ptr<LayerBackend>> make_device_backend(Device& device, const ModelConfig& config,
                                                          const ModelOptions& options,
                                                          const LoadWeights& load) {
  const std::string device_name = "the " + std::string(device.name()) + " device";
  if (!has_portable_bits(options.kernels->name)) {
    return usage_error(device_name + " has the arithmetic of the tables avx2_portable and avx512, found " +
                       std::string(options.kernels->name) + "; choose one with --kernels");
  }
  if (options.streams_layers)
    return usage_error(device_name + " needs the whole network; leave out --memory");
  OUTRIDER_TRY(DecoderWeights weights, load());
  if (!std::ranges::all_of(weights.list().stacks, are_alike)) {
    return usage_error(device_name + " needs all experts of a layer in one type, and this " + config.family +
                       " model has several; choose one with --weights, or leave out --device");
  }
  int64_t needed = weights.list().bytes();
  if (weights.table) needed += stored_table_bytes(weights.table->dtype, weights.table->n, weights.table->k);
  if (needed > device.free_bytes().value_or(needed)) return memory_error(device, device_name, needed);
  try {
    return std::unique_ptr<LayerBackend>(
        std::make_unique<DeviceBackend>(device, config, options, std::move(weights)));
  } catch (const std::bad_alloc&) {
    return memory_error(device, device_name, needed);
  }
}

Result<const KernelTable*> select_device_kernels() {
  const std::vector<std::string_view> names = available_kernels();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (has_portable_bits(*name)) return select_kernels(*name);
  }
  return usage_error(
      "devices need a processor with AVX2, AVX-512 or NEON, found one without; leave out --device");
}

namespace {

// The devices of a kind by their numbers, each opened once. Ranks that are threads ask at the same time.
template <typename Opened>
class NumberedDevices {
 public:
  template <typename Open>
  Opened& at(int number, Open&& open) {
    const std::lock_guard lock(mutex_);
    auto found = opened_.find(number);
    if (found == opened_.end()) found = opened_.emplace(number, open()).first;
    return *found->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Opened>> opened_;
};

}  // namespace

const FoundCuda& found_cuda(int number) {
  static NumberedDevices<const FoundCuda> devices;
  return devices.at(number, [&] {
    return std::make_unique<const FoundCuda>(
        find_cuda_device(open_cuda_driver(), cuda_images(), kCudaVersion, number));
  });
}

Result<std::unique_ptr<LayerBackend>> make_emulated_backend(const ModelConfig& config,
                                                            const ModelOptions& options,
                                                            const LoadWeights& load) {
  static NumberedDevices<EmulatedDevice> devices;
  EmulatedDevice& device =
      devices.at(options.device_number, [] { return std::make_unique<EmulatedDevice>(EmulationOptions()); });
  return make_device_backend(device, config, options, load);
}

Result<std::unique_ptr<LayerBackend>> make_cuda_backend(const ModelConfig& config,
                                                        const ModelOptions& options,
                                                        const LoadWeights& load) {
  const FoundCuda& cuda = found_cuda(options.device_number);
  if (!cuda.device) return resource_error("--device cuda: " + cuda.problem + "; or leave out --device");
  return make_device_backend(*cuda.device, config, options, load);
}

}  // namespace outrider
