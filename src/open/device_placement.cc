// SPDX-License-Identifier: Apache-2.0
#include "open/device_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "device_kernels/attention/chunks.h"
#include "device_kernels/products/device_matrix.h"
#include "device_kernels/products/stored_codes.h"
#include "engine/storage_type.h"
#include "models/backend/device/row_limits.h"
#include "models/blocks/kinds.h"
#include "models/decoder_weights.h"
#include "open/default_context.h"

namespace outrider {
namespace {

constexpr std::string_view kLayers = "model.layers.";

// The layer that a tensor belongs to; nullopt: it is outside of layers.
std::optional<int64_t> layer_of(std::string_view name) {
  if (!name.starts_with(kLayers)) return std::nullopt;
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  if (error != std::errc()) return std::nullopt;
  return layer;
}

// Bytes on a device.
struct LayerNeeds {
  int64_t experts = 0;
  int64_t weights = 0;  // all others
  int64_t cache = 0;
};
struct TargetNeeds {
  std::vector<LayerNeeds> layers;
  int64_t ends = 0;  // the parts outside of layers
  int64_t scratch = 0;
  int64_t context = 0;

  DeviceNeeds without(const Placement& placement) const {
    DeviceNeeds needs{.weights = ends, .scratch = scratch, .context = context};
    for (int64_t i = placement.host_layers; i < std::ssize(layers); ++i) {
      const LayerNeeds& layer = layers[static_cast<size_t>(i)];
      needs.weights += layer.weights + (i < placement.host_experts ? 0 : layer.experts);
      needs.cache += layer.cache;
    }
    return needs;
  }
};

// The state of a sequence in a layer.
int64_t state_bytes(const ModelConfig& config, int64_t layer) {
  return make_block(*config.traits_of(layer).kind, {config, layer, {}})->cache().state_size *
         static_cast<int64_t>(sizeof(float));
}

// Sums of the chunks of entries that rows see, at most.
int64_t attention_numbers(const ModelConfig& config, int64_t rows, int64_t context) {
  const int64_t chunks = length_bucket(context) / simt::kChunkEntries;
  const int64_t of_chunk = config.head_count * (config.head_dim + simt::kSoftmaxNumbers);
  return std::max(chunks * of_chunk, std::min(kMostChunkNumbers, rows * chunks * of_chunk));
}

// Rotations and learned rows of every position, which steps on the device read.
int64_t position_numbers(const ModelConfig& config, int64_t context) {
  const int64_t rotated = std::ssize(config.ropes) * config.head_dim;
  return context * (rotated + (config.learned_positions.count > 0 ? config.hidden_size : 0));
}

// The rows of a prompt with a full batch; drafts have a few more.
int64_t scratch_bytes(const EngineOptions& options, const ModelFile& target, int64_t context,
                      int64_t widest) {
  constexpr int64_t kDrafted = 64;
  const ModelConfig& config = target.config;
  const int64_t wanted = options.max_batch + kDrafted;
  const int64_t rows = options.max_batch_rows > 0 ? options.max_batch_rows : options.prefill_chunk + wanted;
  const int64_t inputs = config.layer_count * config.layer_inputs.size;
  const int64_t of_row =
      6 * config.hidden_size + 4 * widest + 2 * inputs;  // the stream, products on their way
  // Choosers of tokens, of steps on the device and of host steps, keep the likeliest tokens of a row.
  constexpr int64_t kChoiceRows = kMostListedRows + kMostChosenRows, kOfToken = sizeof(int) + sizeof(double);
  const int64_t pages = options.max_batch * (context / options.page_size + 1);
  const int64_t words = rows * of_row + wanted * config.vocab_size + listed_words(pages) +
                        attention_numbers(config, rows, context) + position_numbers(config, context);
  return words * static_cast<int64_t>(sizeof(float)) + kChoiceRows * config.vocab_size * kOfToken;
}

// The most outputs of a matrix in a layer.
int64_t widest_of(const ModelFile& file) {
  int64_t widest = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const std::optional<int64_t> layer = layer_of(name);
    if (tensor.shape.size() == 2 && layer && *layer < file.config.layer_count)
      widest = std::max(widest, tensor.rows());
  }
  return widest;
}

// Rows that drafts are computed with beside the target's, about. A head has layers like the target's.
int64_t draft_scratch(const EngineOptions& options, const ModelFile& target, const DraftFiles& drafts) {
  if (options.draft_ranks > 0) return 0;
  int64_t bytes = 0;
  for (const ModelFile& model : drafts.models)
    bytes += scratch_bytes(options, model, options.context, widest_of(model));
  if (drafts.head) bytes += scratch_bytes(options, target, options.context, widest_of(target));
  return bytes;
}

TargetNeeds target_needs(const EngineOptions& options, const ModelFile& target) {
  const ModelConfig& config = target.config;
  const std::optional<DType> type = storage_type(options.weights);
  TargetNeeds needs;
  needs.layers.resize(static_cast<size_t>(config.layer_count));
  needs.context = options.context > 0 ? options.context : default_context(options, target, {}, std::nullopt);
  for (const auto& [name, tensor] : target.tensors) {
    if (tensor.shape.size() != 2) continue;
    const bool is_table = (name == "model.embed_tokens.weight" && !config.tied_embeddings) ||
                          name.starts_with("model.embed_tokens_per_layer");  // kept as stored
    const int64_t bytes =
        is_table ? stored_table_bytes(tensor.dtype, tensor.rows(), tensor.cols())
                 : device_matrix_bytes(type.value_or(tensor.dtype), tensor.rows(), tensor.cols());
    const std::optional<int64_t> layer = layer_of(name);
    if (!layer || *layer >= config.layer_count) {
      needs.ends += bytes;
      continue;
    }
    LayerNeeds& of = needs.layers[static_cast<size_t>(*layer)];
    (name.find(".mlp.experts.") == std::string::npos ? of.weights : of.experts) += bytes;
  }
  for (int64_t i = 0; i < config.layer_count; ++i) {
    needs.layers[static_cast<size_t>(i)].cache =
        needs.context * cache_bytes_per_token(config, storage_type(options.kv_cache_type), i) +
        options.max_batch * state_bytes(config, i);
  }
  needs.scratch = scratch_bytes(options, target, needs.context, widest_of(target));
  return needs;
}

int64_t megabytes(int64_t bytes) { return bytes / 1'000'000; }

}  // namespace

DeviceNeeds device_needs(const EngineOptions& options, const ModelFile& target, const Placement& placement) {
  return target_needs(options, target).without(placement);
}

Placement asked_placement(const EngineOptions& options, const ModelConfig& config) {
  const int64_t layers = config.layer_count;
  const auto asked = [&](const std::optional<int>& option, int64_t all, int64_t unset) {
    if (!option) return unset;
    return *option == EngineOptions::kAllLayers ? all : std::min<int64_t>(*option, all);
  };
  const int64_t on_device = asked(options.gpu_layers, layers + 1, layers + 1);
  const int64_t experts = config.experts.count > 0 ? asked(options.cpu_experts, layers, 0) : 0;
  return {.host_layers = std::min(layers + 1 - on_device, layers), .host_experts = experts};
}

std::optional<Placement> planned_placement(const EngineOptions& options, const ModelFile& target,
                                           int64_t free_bytes) {
  const int64_t layers = target.config.layer_count;
  const TargetNeeds needs = target_needs(options, target);
  const int64_t room = free_bytes - free_bytes / 32;  // pieces of memory that are too small for anything
  const auto fits = [&](const Placement& placement) { return needs.without(placement).bytes() <= room; };
  Placement placement = asked_placement(options, target.config);
  const bool moves_experts = target.config.experts.count > 0 && !options.cpu_experts;
  while (moves_experts && !fits(placement) && placement.host_experts < layers) ++placement.host_experts;
  while (!options.gpu_layers && !fits(placement) && placement.host_layers < layers) ++placement.host_layers;
  if (options.gpu_layers || (fits(placement) && placement.host_layers < layers)) return placement;
  return std::nullopt;
}

std::string placement_text(const Placement& placement, const ModelConfig& config) {
  const int64_t layers = config.layer_count + 1, on_device = layers - placement.host_layers;
  std::string text = on_device == layers ? fmt::format("all {} layers", layers)
                                         : fmt::format("the last {} of {} layers", on_device, layers);
  if (placement.host_experts > placement.host_layers)
    text += fmt::format(" without the experts of the first {}", placement.host_experts);
  return text;
}

Status take_placement(EngineOptions& options, const ModelFile& target, const DraftFiles& drafts,
                      std::optional<int64_t> free_bytes) {
  const ModelConfig& config = target.config;
  if (options.device == ComputeDevice::kCpu) {
    if (options.gpu_layers.value_or(0) != 0 || options.cpu_experts.value_or(0) != 0)
      log_warning("the processor computes all layers, so --gpu-layers and --cpu-experts have no effect");
    return {};
  }
  if (options.cpu_experts.value_or(0) != 0 && config.experts.count == 0)
    log_warning("this " + config.family + " model has no experts, so --cpu-experts has no effect");
  Placement placement = asked_placement(options, config);
  if (options.tensor_parallel * options.pipeline_parallel > 1) {
    if (!placement.is_split()) return {};
    return usage_error(
        "expected --gpu-layers or --cpu-experts, or a target divided by --tensor-parallel or "
        "--pipeline-parallel, found both");
  }
  if (free_bytes) {
    const int64_t room =
        *free_bytes - draft_bytes(options, drafts, options.context) - draft_scratch(options, target, drafts);
    const int64_t needed = device_needs(options, target, placement).bytes();
    const std::optional<Placement> planned = planned_placement(options, target, room);
    if (!planned) {
      return resource_error(fmt::format(
          "the device has {} MB free, and one layer of this model needs {} MB "
          "with its output head; lower --ctx, or leave out --device",
          megabytes(room),
          megabytes(device_needs(options, target, {config.layer_count - 1, config.layer_count}).bytes())));
    }
    if (*planned != placement) {
      log_info(
          fmt::format("the device has {} MB free, and the model needs {} MB: {} are there, and the "
                      "processor has the rest; --gpu-layers and --cpu-experts ask for others",
                      megabytes(room), megabytes(needed), placement_text(*planned, config)));
    }
    placement = *planned;
  }
  options.gpu_layers = static_cast<int>(config.layer_count + 1 - placement.host_layers);
  options.cpu_experts = static_cast<int>(placement.host_experts);
  return {};
}

}  // namespace outrider
