// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_layers.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/family_traits.h"

namespace outrider {
namespace {

Error wrong_list_length(const ArchitectureKeys& keys, std::string_view key, int64_t layers, size_t found) {
  return keys.fail(keys.full(key) + " must have an entry for each of " + std::to_string(layers) +
                   " layers, found " + std::to_string(found));
}

// A number of at least `min` for each layer; 0: the key is absent.
Result<std::vector<int64_t>> read_by_layer(const ArchitectureKeys& keys, std::string_view key, int64_t layers,
                                           int64_t min = 1) {
  OUTRIDER_TRY(std::vector<int64_t> numbers, keys.integers(key));
  for (const int64_t number : numbers) {
    if (number < min) return keys.fail(keys.full(key) + " must be positive, found " + std::to_string(number));
  }
  if (numbers.size() <= 1)
    return std::vector<int64_t>(static_cast<size_t>(layers), numbers.empty() ? 0 : numbers.front());
  if (std::ssize(numbers) != layers) return wrong_list_length(keys, key, layers, numbers.size());
  return numbers;
}

// Which layers have the window that the file names. It lists them, or states the period of layers without it,
// or leaves that to the family.
Result<std::vector<bool>> read_slides(const ArchitectureKeys& keys, const ModelFamily& family,
                                      int64_t layers) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  if (keys.is_list(kKey)) {
    OUTRIDER_TRY(std::vector<bool> listed, keys.booleans(kKey));
    if (std::ssize(listed) != layers) return wrong_list_length(keys, kKey, layers, listed.size());
    return listed;
  }
  OUTRIDER_TRY(const auto stated, keys.integer(kKey));
  const int64_t period = stated.value_or(family.full_period);
  std::vector<bool> slides;
  for (int64_t i = 1; i <= layers; ++i) slides.push_back(period <= 0 || i % period != 0);
  return slides;
}

// The head size of layers with a window; 0: the model's head size. Families with one RoPE have one head size.
Result<int64_t> read_window_head_dim(const ArchitectureKeys& keys, const ModelFamily& family) {
  if (family.window_rope_theta == 0) return 0;
  OUTRIDER_TRY(const auto of_keys, keys.integer("attention.key_length_swa"));
  OUTRIDER_TRY(const auto of_values, keys.integer("attention.value_length_swa"));
  if (of_values.value_or(of_keys.value_or(0)) != of_keys.value_or(0))
    return keys.fail("keys and values of layers with a window must have the same head size");
  return of_keys.value_or(0);
}

// Which layers are of the family's other kind.
Result<std::vector<bool>> read_other_layers(const ArchitectureKeys& keys, const ModelFamily& family,
                                            const std::vector<int64_t>& kv_heads) {
  const LayerKind* other = family.other_layers;
  if (other != nullptr && other->find_gguf_layers != nullptr)
    return other->find_gguf_layers(keys, kv_heads.size());
  std::vector<bool> others;
  for (const int64_t heads : kv_heads) others.push_back(heads == 0);
  return others;
}

// 0 stands for the size that the model has as a whole.
int64_t where_other(int64_t size, int64_t of_model) { return size == of_model ? 0 : size; }

}  // namespace

Status read_gguf_layers(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                        ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  OUTRIDER_TRY(const int64_t listed, keys.require_integer("block_count"));  // with layers that draft
  const int64_t blocks = std::clamp<int64_t>(listed, 0, kMaxLayers);
  OUTRIDER_TRY(const auto window, keys.integer("attention.sliding_window"));
  OUTRIDER_TRY(const auto slides, read_slides(keys, family, blocks));
  OUTRIDER_TRY(const int64_t window_head_dim, read_window_head_dim(keys, family));
  const bool is_hybrid = family.other_layers != nullptr;
  OUTRIDER_TRY(const auto kv_heads,
               read_by_layer(keys, "attention.head_count_kv", blocks, is_hybrid ? 0 : 1));
  OUTRIDER_TRY(const auto ffn_sizes, read_by_layer(keys, "feed_forward_length", blocks));
  OUTRIDER_TRY(const std::vector<bool> others, read_other_layers(keys, family, kv_heads));
  std::vector<LayerTraits> layers(static_cast<size_t>(std::clamp<int64_t>(config->layer_count, 0, blocks)));
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerTraits& layer = layers[i];
    const auto number = static_cast<int64_t>(i) + 1;
    if (family.nope_period != 0 && number % family.nope_period == 0) layer.rope = LayerTraits::kNoRope;
    if (slides[i]) layer.window = window.value_or(0);
    if (layer.window != 0) layer.head_dim = where_other(window_head_dim, config->head_dim);
    if (is_hybrid && others[i]) layer.kind = family.other_layers;
    layer.kv_head_count = where_other(kv_heads[i], config->kv_head_count);
    layer.ffn_size = where_other(ffn_sizes[i], config->ffn_size);
    const std::string prefix = "blk." + std::to_string(i) + ".";
    layer.values_are_keys = family.values_may_be_keys && !file.tensors.contains(prefix + "attn_v.weight") &&
                            !file.tensors.contains(prefix + "attn_qkv.weight");
  }
  OUTRIDER_TRY(const auto shared, keys.integer("attention.shared_kv_layers"));
  share_keys(shared.value_or(0), &layers);
  config->set_layer_traits(std::move(layers));
  return {};
}

}  // namespace outrider
