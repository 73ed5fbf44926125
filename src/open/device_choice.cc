// SPDX-License-Identifier: Apache-2.0
#include "open/device_choice.h"

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "device_kernels/products/device_matrix.h"
#include "device_kernels/products/stored_codes.h"
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
         options.memory_limit > 0 || (!options.kernels.empty() && !has_portable_bits(options.kernels));
}

// Why the GPU cannot compute the target; empty: it can.
std::string obstacle(const EngineOptions& options, const ModelFile& target, const CudaDevice& gpu) {
  const int64_t needed = device_needs(options, target).bytes(), free = gpu.free_bytes().value_or(0);
  if (needed <= free) return {};
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

Result<const KernelTable*> kernels_of(const EngineOptions& options) {
  if (options.device == ComputeDevice::kCpu || !options.kernels.empty())
    return select_kernels(options.kernels);
  return select_device_kernels();
}

DeviceNeeds device_needs(const EngineOptions& options, const ModelFile& target) {
  const ModelConfig& config = target.config;
  const std::optional<DType> type = storage_type(options.weights);
  DeviceNeeds needs{.context = options.context > 0 ? options.context
                                                   : default_context(options, target, {}, std::nullopt)};
  for (const auto& [name, tensor] : target.tensors) {
    if (tensor.shape.size() != 2) continue;
    const bool is_table = name == "model.embed_tokens.weight" && !config.tied_embeddings;  // kept as stored
    needs.weights += is_table
                         ? stored_table_bytes(tensor.dtype, tensor.rows(), tensor.cols())
                         : device_matrix_bytes(type.value_or(tensor.dtype), tensor.rows(), tensor.cols());
  }
  needs.cache = needs.context * cache_bytes_per_token(config, storage_type(options.kv_cache_type));
  return needs;
}

}  // namespace outrider
