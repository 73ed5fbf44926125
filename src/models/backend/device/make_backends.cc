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

std::string text_of(const Device& device) { return "the " + std::string(device.name()) + " device"; }

Error memory_error(const Device& device, const std::string& need) {
  return resource_error(text_of(device) + " has " + megabytes(device.free_bytes().value_or(0)) +
                        " free, and " + need +
                        "; choose a smaller model or weight type, lower --gpu-layers, or leave out --device");
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

Status check_device_options(const Device& device, const ModelOptions& options) {
  if (!has_portable_bits(options.kernels->name) && options.kernels->name != kTensorCoreProfile) {
    return usage_error(text_of(device) +
                       " has the arithmetic of the tables avx2_portable and avx512, found " +
                       std::string(options.kernels->name) + "; choose one with --kernels");
  }
  if (options.streams_layers)
    return usage_error(text_of(device) + " needs all weights in memory; leave out --memory");
  return {};
}

Status check_device_weights(const Device& device, const ModelConfig& config, const DecoderWeights& weights,
                            const std::unordered_set<const void*>& kept) {
  const WeightList list = weights.list();
  for (const auto& stack : list.stacks) {
    if (kept.contains(stack.front()) || are_alike(stack)) continue;
    return usage_error(text_of(device) + " needs all experts of a layer in one type, and this " +
                       config.family +
                       " model has several; choose one with --weights, or leave out --device");
  }
  int64_t needed = 0;
  for (const Projection* projection : list.projections)
    needed += kept.contains(projection) ? 0 : projection->bytes();
  if (weights.table) needed += stored_table_bytes(weights.table->dtype, weights.table->n, weights.table->k);
  const int64_t free = device.free_bytes().value_or(needed);
  return needed <= free ? Status() : memory_error(device, "the weights need " + megabytes(needed + 999'999));
}

Result<std::unique_ptr<LayerBackend>> on_device(const Device& device,
                                                const std::function<std::unique_ptr<LayerBackend>()>& make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return memory_error(device, "the weights need more");
  }
}

Result<std::unique_ptr<LayerBackend>> make_device_backend(Device& device, const ModelConfig& config,
                                                          const ModelOptions& options,
                                                          const LoadWeights& load) {
  OUTRIDER_RETURN_IF_ERROR(check_device_options(device, options));
  OUTRIDER_TRY(DecoderWeights weights, load());
  OUTRIDER_RETURN_IF_ERROR(check_device_weights(device, config, weights, {}));
  return on_device(
      device, [&] { return std::make_unique<DeviceBackend>(device, config, options, std::move(weights)); });
}

namespace {

Result<const KernelTable*> fastest_portable_kernels() {
  const std::vector<std::string_view> names = available_kernels();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (has_portable_bits(*name)) return select_kernels(*name);
  }
  return usage_error(
      "devices need a processor with AVX2, AVX-512 or NEON, found one without; leave out --device");
}

}  // namespace

Result<const KernelTable*> select_device_kernels(std::string_view name) {
  if (!name.empty() && name != kTensorCoreProfile) return select_kernels(name);
  OUTRIDER_TRY(const KernelTable* fastest, fastest_portable_kernels());
  if (name.empty()) return fastest;
  static const KernelTable tensor_cores = [&] {
    KernelTable table = *fastest;
    table.name = kTensorCoreProfile;
    return table;
  }();
  return &tensor_cores;
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

Device& emulated_device(int number) {
  static NumberedDevices<EmulatedDevice> devices;
  return devices.at(number, [] { return std::make_unique<EmulatedDevice>(EmulationOptions()); });
}

}  // namespace outrider
