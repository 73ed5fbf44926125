// SPDX-License-Identifier: Apache-2.0
#include "formats/kinds/short_convolution.h"

#include <algorithm>
#include <string>
#include <vector>

#include "formats/family_traits.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/kinds/layer_list.h"
#include "formats/number_limit.h"
#include "formats/tensor_list.h"

namespace outrider {
namespace {

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

void append_convolution(const ModelConfig& config, int64_t /*layer*/, const std::string& prefix,
                        TensorList& list) {
  const auto [taps, bias] = config.of_kinds.of<ConvolutionTraits>();
  const int64_t hidden = config.hidden_size;
  const std::string name = prefix + "conv.";
  list.matrix(name + "in_proj", 3 * hidden, hidden, bias);
  list.numbers(name + "conv", hidden, taps);
  if (bias) list.bias(name + "conv", hidden);
  list.matrix(name + "out_proj", hidden, hidden, bias);
}

Status validate_convolution(const ModelConfig& config) {
  return check_limit({"the taps of short convolutions", config.of_kinds.of<ConvolutionTraits>().taps, 2, 64});
}

Status read_gguf_convolution(const ArchitectureKeys& keys, ModelConfig* config) {
  OUTRIDER_TRY(config->of_kinds.edit<ConvolutionTraits>().taps, keys.require_integer("shortconv.l_cache"));
  return {};
}

void set_published_convolution(ModelConfig* config) { config->of_kinds.edit<ConvolutionTraits>().taps = 3; }

}  // namespace

constinit const LayerKind kShortConvolutionKind = {.name = "short_convolution",
                                                   .validate = validate_convolution,
                                                   .append_tensors = append_convolution,
                                                   .read_gguf = read_gguf_convolution,
                                                   .set_published = set_published_convolution};

Status read_lfm2_traits(const JsonObject& root, ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  OUTRIDER_TRY(const auto taps, root.integer("conv_L_cache"));
  ConvolutionTraits& convolution = config->of_kinds.edit<ConvolutionTraits>();
  OUTRIDER_TRY(convolution.bias, flag(root, "conv_bias", false));
  OUTRIDER_TRY(const auto older_tied, root.boolean("tie_embedding"));
  convolution.taps = taps.value_or(3);
  config->tied_embeddings = older_tied.value_or(config->tied_embeddings);
  OUTRIDER_RETURN_IF_ERROR(read_lfm2_ffn_size(root, config));
  OUTRIDER_TRY(std::vector<bool> attends, read_attention_types(root, "conv"));
  if (attends.empty()) {
    const auto layers = static_cast<size_t>(std::clamp<int64_t>(config->layer_count, 0, kMaxLayers));
    OUTRIDER_TRY(attends, read_attention_numbers(root, "full_attn_idxs", layers));
    if (std::ssize(attends) != config->layer_count) return {};
  }
  return set_layer_kinds(root, attends, kShortConvolutionKind, config);
}

}  // namespace outrider
