// SPDX-License-Identifier: Apache-2.0
#include "open/device_choice.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "device_kernels/products/device_matrix.h"
#include "engine/storage_type.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder_weights.h"
#include "open/default_context.h"

namespace outrider {
namespace {

// A capability comes here when tools/device_check.sh has passed on it, and says so in its last line. No GPU
// has been tried so far.
constexpr std::span<const ComputeCapability> kCheckedCapabilities = {};

// Something that only processors do is asked for.
bool wants_processors(const EngineOptions& options) {
  return options.tensor_parallel * options.pipeline_parallel > 1 || options.draft_ranks > 0 ||
         options.memory_limit > 0 ||
         (!options.kernels.empty() && options.kernels != kTensorCoreProfile &&
          !has_portable_bits(options.kernels));
}

// Why the GPU cannot compute the target; empty: it can.
std::string obstacle(const EngineOptions& options, const ModelFile& target, const CudaDevice& gpu) {
  const int64_t needed = device_needs(options, target).bytes(), free = gpu.free_bytes().value_or(0);
  if (planned_placement(options, target, free)) return {};
  return "it has " + std::to_string(free / 1'000'000) + " MB free, and the model needs " +
         std::to_string(needed / 1'000'000) + " MB";
}

}  // namespace

std::string_view device_name(ComputeDevice device) {
  switch (device) {
    case ComputeDevice::kAuto:
      return "auto";
    case ComputeDevice::kCpu:
      return "cpu";
    case ComputeDevice::kCuda:
      return "cuda";
    case ComputeDevice::kEmulated:
      return "emulated";
  }
  return "";
}

std::string_view backend_name(ComputeDevice device) {
  return device == ComputeDevice::kCpu ? std::string_view() : device_name(device);
}

DeviceChoice choose_device(const EngineOptions& options, const ModelFile& target) {
  if (options.device != ComputeDevice::kAuto) return {.device = options.device};
  if (wants_processors(options)) return {};
  return choose_gpu(options, target, found_cuda(), kCheckedCapabilities);
}

DeviceChoice choose_gpu(const EngineOptions& options, const ModelFile& target, const FoundCuda& gpu,
                        std::span<const ComputeCapability> checked) {
  if (!gpu.device) return {.reason = gpu.has_driver ? gpu.problem : ""};
  const std::string reason = obstacle(options, target, *gpu.device);
  if (!reason.empty()) return {.reason = reason};
  const ComputeCapability capability = gpu.device->capability();
  if (std::ranges::find(checked, capability) == checked.end()) {
    return {.reason = "tools/device_check.sh has not passed on a GPU of compute capability " +
                      capability.text() + " yet; --device cuda takes it all the same"};
  }
  return {.device = ComputeDevice::kCuda};
}

void take_device(EngineOptions& options, const ModelFile& target) {
  const DeviceChoice choice = choose_device(options, target);
  options.device = choice.device;
  if (choice.reason.empty()) return;
  static const bool is_said = [&] {
    log_warning("the processor computes, and not the GPU: " + choice.reason +
                "; --device cpu hides this line");
    return true;
  }();
  static_cast<void>(is_said);
}

std::optional<int64_t> free_device_bytes(ComputeDevice device) {
  if (device != ComputeDevice::kCuda || !found_cuda().device) return std::nullopt;
  return found_cuda().device->free_bytes();
}

Placement expected_placement(const EngineOptions& options, const ModelFile& target) {
  const std::optional<int64_t> free = free_device_bytes(ComputeDevice::kCuda);
  const std::optional<Placement> planned = free ? planned_placement(options, target, *free) : std::nullopt;
  return planned.value_or(asked_placement(options, target.config));
}

Result<const KernelTable*> kernels_of(const EngineOptions& options) {
  const bool is_on_device = options.device != ComputeDevice::kCpu;
  if (options.kernels == kTensorCoreProfile) {
    const int ranks = options.tensor_parallel * options.pipeline_parallel + options.draft_ranks;
    if (!is_on_device || ranks > 1)
      return usage_error(
          "cuda_tc computes on one GPU; choose --device cuda without ranks, or leave out --kernels");
  }
  return is_on_device ? select_device_kernels(options.kernels) : select_kernels(options.kernels);
}

}  // namespace outrider
