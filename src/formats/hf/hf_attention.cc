// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_attention.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/quote.h"

namespace outrider {
namespace {

using Flags = std::vector<bool>;  // [layers]

// Limits lists before their layers are counted out; validate() has the message for more.
constexpr int64_t kMaxLayers = 1024;

// True for all layers but each `period`-th; 0: for all.
Flags all_but_each(int64_t period, int64_t layers) {
  Flags flags(static_cast<size_t>(layers), true);
  for (int64_t i = period; period > 0 && i > 0 && i <= layers; i += period)
    flags[static_cast<size_t>(i - 1)] = false;
  return flags;
}

Error wrong_length(const JsonObject& root, std::string_view key, int64_t layers, size_t found) {
  return root.fail(quote(key) + " must have an entry for each of " + std::to_string(layers) +
                   " layers, found " + std::to_string(found));
}

// Which layers "layer_types" gives a sliding window; nullopt: the key is absent.
Result<std::optional<Flags>> read_layer_types(const JsonObject& root, int64_t layers) {
  OUTRIDER_TRY(const auto types, root.array("layer_types"));
  if (!types) return std::optional<Flags>();
  Flags slides;
  for (const simdjson::dom::element element : *types) {
    std::string_view type;
    if (element.get(type) != simdjson::SUCCESS) return root.wrong_type("layer_types", "a list of strings");
    if (type != "full_attention" && type != "sliding_attention") {
      return root.fail("layer type " + quote(type) +
                       " is not supported; full_attention and sliding_attention are");
    }
    slides.push_back(type == "sliding_attention");
  }
  if (std::ssize(slides) != layers) return wrong_length(root, "layer_types", layers, slides.size());
  return std::optional(slides);
}

// The layers that slide where there is no list of their types.
Result<Flags> default_slides(const JsonObject& root, const ModelFamily& family, int64_t layers) {
  if (family.window_rule != WindowRule::kSwitched) {
    OUTRIDER_TRY(const auto stated, root.integer("sliding_window_pattern"));
    const int64_t period = family.full_period == 0 ? 0 : stated.value_or(family.full_period);
    return all_but_each(period, layers);
  }
  // Only layers from max_window_layers on have the window.
  OUTRIDER_TRY(const auto full_layers, root.integer("max_window_layers"));
  const int64_t full = std::clamp<int64_t>(full_layers.value_or(28), 0, layers);
  Flags slides(static_cast<size_t>(layers), true);
  std::fill(slides.begin(), slides.begin() + full, false);
  return slides;
}

Result<int64_t> read_window(const JsonObject& root, const ModelFamily& family) {
  if (family.window_rule == WindowRule::kIgnored) return 0;
  OUTRIDER_TRY(const auto stated, root.integer("sliding_window"));
  OUTRIDER_TRY(const auto enabled, root.boolean("use_sliding_window"));
  if (family.window_rule == WindowRule::kSwitched && !enabled.value_or(false)) return 0;
  return stated.value_or(root.contains("sliding_window") ? 0 : family.sliding_window);
}

// Which layers rotate queries and keys.
Result<Flags> read_rotates(const JsonObject& root, const ModelFamily& family, int64_t layers) {
  if (family.nope_period == 0) return Flags(static_cast<size_t>(layers), true);
  OUTRIDER_TRY(const auto list, root.array("no_rope_layers"));  // 1: the layer has RoPE
  if (!list || list->size() == 0) {
    OUTRIDER_TRY(const auto period, root.integer("no_rope_layer_interval"));
    return all_but_each(period.value_or(family.nope_period), layers);
  }
  Flags rotates;
  for (const simdjson::dom::element element : *list) {
    int64_t flag = 0;
    if (element.get(flag) != simdjson::SUCCESS) return root.wrong_type("no_rope_layers", "a list of 0 and 1");
    rotates.push_back(flag != 0);
  }
  if (std::ssize(rotates) != layers) return wrong_length(root, "no_rope_layers", layers, rotates.size());
  return rotates;
}

}  // namespace

Status read_hf_attention(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  const int64_t layers = std::clamp<int64_t>(config->layer_count, 0, kMaxLayers);
  OUTRIDER_TRY(const int64_t window, read_window(root, family));
  Flags slides(static_cast<size_t>(layers), false);
  if (window != 0) {
    OUTRIDER_TRY(const auto listed, read_layer_types(root, layers));
    OUTRIDER_TRY(const Flags usual, default_slides(root, family, layers));
    slides = listed.value_or(usual);
  }
  OUTRIDER_TRY(const Flags rotates, read_rotates(root, family, layers));
  std::vector<LayerTraits> attention;
  for (size_t i = 0; i < slides.size(); ++i) {
    attention.push_back({.window = slides[i] ? window : 0, .rope = rotates[i] ? 0 : LayerTraits::kNoRope});
  }
  config->set_layer_traits(std::move(attention));
  return {};
}

}  // namespace outrider
