// SPDX-License-Identifier: Apache-2.0
#include "formats/hybrid_traits.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "formats/expert_traits.h"
#include "formats/family_traits.h"

namespace outrider {
namespace {

// Whether each layer has attention, by "layer_types"; an empty list: the key is absent.
Result<std::vector<bool>> read_attention_types(const JsonObject& root, std::string_view other) {
  std::vector<bool> attends;
  OUTRIDER_TRY(const auto types, root.array("layer_types"));
  if (!types) return attends;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    if (element.get(type) != simdjson::SUCCESS) return root.wrong_type("layer_types", "a list of strings");
    if (type != "full_attention" && type != other) {
      return root.fail("layer type " + quote(type) + " is not supported; full_attention and " +
                       std::string(other) + " are");
    }
    attends.push_back(type == "full_attention");
  }
  return attends;
}

// The layers of a list of numbers have attention; an absent list: all have.
Result<std::vector<bool>> read_attention_numbers(const JsonObject& root, std::string_view key,
                                                 size_t layers) {
  OUTRIDER_TRY(const auto numbers, root.array(key));
  std::vector<bool> attends(layers, !numbers.has_value());
  if (!numbers) return attends;
  for (const simdjson::dom::element element : *numbers) {
    uint64_t layer = 0;
    if (element.get(layer) != simdjson::SUCCESS || layer >= layers)
      return root.wrong_type(key, "a list of layer numbers");
    attends[layer] = true;
  }
  return attends;
}

// Error: not a word for each layer.
Status set_kinds(const JsonObject& root, const std::vector<bool>& attends, LayerKind other,
                 ModelConfig* config) {
  if (std::ssize(attends) != config->layer_count) {
    return root.fail("'layer_types' must have an entry for each of " + std::to_string(config->layer_count) +
                     " layers, found " + std::to_string(attends.size()));
  }
  std::vector<LayerTraits> layers = config->listed_traits(std::ssize(attends));
  for (size_t i = 0; i < layers.size(); ++i)
    if (!attends[i]) layers[i].kind = other;
  config->set_layer_traits(std::move(layers));
  return {};
}

// Configurations state a size from which the real one is derived unless they say that it is the real one.
Status read_lfm2_ffn_size(const JsonObject& root, ModelConfig* config) {
  constexpr int64_t kMaxSize = int64_t{1} << 24;  // validate() has the message for more
  OUTRIDER_TRY(const auto older, root.integer("block_ff_dim"));
  OUTRIDER_TRY(const bool adjusts, flag(root, "block_auto_adjust_ff_dim", true));
  OUTRIDER_TRY(const auto factor, root.number("block_ffn_dim_multiplier"));
  OUTRIDER_TRY(const auto multiple, root.integer("block_multiple_of"));
  if (!older && !root.contains("intermediate_size")) return root.fail("'intermediate_size' is missing");
  config->ffn_size = older.value_or(config->ffn_size);
  if (!adjusts || config->ffn_size < 1 || config->ffn_size > kMaxSize) return {};
  const double usual = root.contains("block_ffn_dim_multiplier") ? 0 : 1;  // an explicit null: no factor
  config->ffn_size = 2 * config->ffn_size / 3;
  if (factor.value_or(usual) == 0) return {};
  const int64_t step = multiple.value_or(256);
  const double size = factor.value_or(usual) * static_cast<double>(config->ffn_size);
  if (step < 1 || !(size >= 1 && size <= static_cast<double>(kMaxSize)))
    return root.fail("block_multiple_of and block_ffn_dim_multiplier make no feed-forward size");
  config->ffn_size = (static_cast<int64_t>(size) + step - 1) / step * step;
  return {};
}

}  // namespace

Status read_qwen35_traits(const JsonObject& root, ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "attention_bias"));
  OUTRIDER_TRY(const auto taps, root.integer("linear_conv_kernel_dim"));
  OUTRIDER_TRY(const auto key_heads, root.integer("linear_num_key_heads"));
  OUTRIDER_TRY(const auto value_heads, root.integer("linear_num_value_heads"));
  OUTRIDER_TRY(const auto key_dim, root.integer("linear_key_head_dim"));
  OUTRIDER_TRY(const auto value_dim, root.integer("linear_value_head_dim"));
  config->delta = {.taps = taps.value_or(4),
                   .key_heads = key_heads.value_or(16),
                   .value_heads = value_heads.value_or(32),
                   .key_dim = key_dim.value_or(128),
                   .value_dim = value_dim.value_or(128),
                   .has_logs = true};
  config->gates_attention = true;
  OUTRIDER_TRY(std::vector<bool> attends, read_attention_types(root, "linear_attention"));
  if (attends.empty()) {
    OUTRIDER_TRY(const auto stated, root.integer("full_attention_interval"));
    const int64_t period = stated.value_or(4);
    if (period < 1) return root.fail("'full_attention_interval' must be positive");
    if (config->layer_count > kMaxLayers) return {};
    for (int64_t i = 1; i <= config->layer_count; ++i) attends.push_back(i % period == 0);
  }
  return set_kinds(root, attends, LayerKind::kDeltaNet, config);
}

Status read_qwen3_next_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(read_qwen35_traits(root, config));
  return read_qwen_moe_traits(root, config);
}

void derive_gguf_qwen3_next_traits(ModelConfig* config) { config->delta.interleaves_keys = false; }

Status read_qwen35_moe_traits(const JsonObject& root, ModelConfig* config) {
  OUTRIDER_RETURN_IF_ERROR(read_qwen35_traits(root, config));
  OUTRIDER_RETURN_IF_ERROR(read_qwen_moe_traits(root, config));
  config->experts.weights = RouterWeights::kSoftmaxOfChosen;
  return {};
}

Status read_lfm2_traits(const JsonObject& root, ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  OUTRIDER_TRY(const auto taps, root.integer("conv_L_cache"));
  OUTRIDER_TRY(config->convolution.bias, flag(root, "conv_bias", false));
  OUTRIDER_TRY(const auto older_tied, root.boolean("tie_embedding"));
  config->convolution.taps = taps.value_or(3);
  config->tied_embeddings = older_tied.value_or(config->tied_embeddings);
  OUTRIDER_RETURN_IF_ERROR(read_lfm2_ffn_size(root, config));
  OUTRIDER_TRY(std::vector<bool> attends, read_attention_types(root, "conv"));
  if (attends.empty()) {
    const auto layers = static_cast<size_t>(std::clamp<int64_t>(config->layer_count, 0, kMaxLayers));
    OUTRIDER_TRY(attends, read_attention_numbers(root, "full_attn_idxs", layers));
    if (std::ssize(attends) != config->layer_count) return {};
  }
  return set_kinds(root, attends, LayerKind::kShortConvolution, config);
}

}  // namespace outrider
