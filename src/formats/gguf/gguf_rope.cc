// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_rope.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/portable_math.h"
#include "base/quote.h"

namespace outrider {
namespace {

// The row of f32 that a tensor holds; empty: there is no such tensor.
Result<std::vector<float>> read_row(const GgufFile& file, const ArchitectureKeys& keys,
                                    std::string_view name) {
  std::vector<float> row;
  const auto it = file.tensors.find(name);
  if (it == file.tensors.end()) return row;
  const TensorView& view = it->second;
  if (view.dtype != DType::kF32 || view.shape.size() != 1)
    return keys.fail("tensor " + std::string(name) + " must be one row of f32");
  row.resize(static_cast<size_t>(view.cols()));
  std::memcpy(row.data(), view.data, static_cast<size_t>(view.bytes()));
  return row;
}

double yarn_magnitude_of(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * portable_log(factor) + 1.0;
}

Status read_gguf_yarn(const ArchitectureKeys& keys, RopeScaling* scaling) {
  OUTRIDER_TRY(const auto fast, keys.number("rope.scaling.yarn_beta_fast"));
  OUTRIDER_TRY(const auto slow, keys.number("rope.scaling.yarn_beta_slow"));
  OUTRIDER_TRY(const auto magnitude_of_all, keys.number("rope.scaling.yarn_log_multiplier"));
  scaling->beta_fast = fast.value_or(32);
  scaling->beta_slow = slow.value_or(1);
  scaling->attention_factor *= yarn_magnitude_of(scaling->factor, 1);
  if (magnitude_of_all.value_or(0) != 0)
    scaling->attention_factor /= yarn_magnitude_of(scaling->factor, *magnitude_of_all);
  return {};
}

// Older files state a linear factor, `old_factor`. A factor of 0 means none.
Result<RopeScalingKind> gguf_scaling_kind(const ArchitectureKeys& keys, const RopeScaling& scaling,
                                          std::optional<double> factor, std::optional<double> old_factor) {
  OUTRIDER_TRY(const auto type, keys.string("rope.scaling.type"));
  const bool has_divisors = !scaling.frequency_divisors.empty();
  const std::string_view name = type.value_or(old_factor.value_or(0) != 0 ? "linear" : "none");
  if (has_divisors && name != "none") {
    return keys.fail("rope_freqs.weight together with " + std::string(name) +
                     " RoPE scaling is not supported");
  }
  if (!scaling.long_divisors.empty()) return RopeScalingKind::kLongRope;
  if (has_divisors) return RopeScalingKind::kLlama3;
  if (name == "none" || (name == "linear" && factor == 0)) return RopeScalingKind::kNone;
  if (name == "linear") return RopeScalingKind::kLinear;
  if (name == "yarn") return RopeScalingKind::kYarn;
  return keys.fail(
      "RoPE scaling " + quote(name) +
      " is not supported; none, linear, yarn, rope_freqs.weight and rope_factors_long.weight are");
}

Status read_gguf_scaling(const GgufFile& file, const ArchitectureKeys& keys, int64_t context,
                         RopeScaling* scaling) {
  OUTRIDER_TRY(scaling->frequency_divisors, read_row(file, keys, "rope_freqs.weight"));
  OUTRIDER_TRY(scaling->long_divisors, read_row(file, keys, "rope_factors_long.weight"));
  OUTRIDER_TRY(const auto old_factor, keys.number("rope.scale_linear"));
  OUTRIDER_TRY(auto factor, keys.number("rope.scaling.factor"));
  if (!factor) factor = old_factor;
  OUTRIDER_TRY(scaling->kind, gguf_scaling_kind(keys, *scaling, factor, old_factor));
  OUTRIDER_TRY(const auto original, keys.integer("rope.scaling.original_context_length"));
  OUTRIDER_TRY(const auto attention_factor, keys.number("rope.scaling.attn_factor"));
  const bool needs_factor =
      scaling->kind == RopeScalingKind::kLinear || scaling->kind == RopeScalingKind::kYarn;
  if (needs_factor && !factor) return keys.fail(keys.full("rope.scaling.factor") + " is missing");
  if (needs_factor) scaling->factor = *factor;
  scaling->original_context = original.value_or(context);
  scaling->attention_factor = attention_factor.value_or(1);
  if (scaling->kind == RopeScalingKind::kYarn) return read_gguf_yarn(keys, scaling);
  if (scaling->kind != RopeScalingKind::kLongRope) return {};
  OUTRIDER_TRY(scaling->frequency_divisors, read_row(file, keys, "rope_factors_short.weight"));
  return {};
}

// The RoPE that layers with a window have to themselves, without scaling.
Status read_window_rope(const ArchitectureKeys& keys, const ModelFamily& family, ModelConfig* config) {
  const auto slides = [](const LayerTraits& layer) { return layer.window != 0; };
  const auto sliding = std::ranges::find_if(config->layer_traits, slides);
  if (family.window_rope_theta == 0 || sliding == config->layer_traits.end()) return {};
  OUTRIDER_TRY(const auto theta, keys.number("rope.freq_base_swa"));
  OUTRIDER_TRY(const auto rotated, keys.integer("rope.dimension_count_swa"));
  const int64_t head_dim = sliding->head_dim != 0 ? sliding->head_dim : config->head_dim;
  RopeTraits rope{.theta = theta.value_or(family.window_rope_theta), .scaling = {}};
  if (rotated.value_or(head_dim) != head_dim) rope.rotated_dim = *rotated;
  config->ropes.push_back(std::move(rope));
  for (LayerTraits& layer : config->layer_traits) layer.rope = slides(layer) ? 1 : 0;
  return {};
}

}  // namespace

Status read_gguf_ropes(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                       ModelConfig* config) {
  RopeTraits& rope = config->ropes.front();
  OUTRIDER_TRY(const auto theta, keys.number("rope.freq_base"));
  rope.theta = theta.value_or(family.rope_theta);
  OUTRIDER_TRY(const auto rotated, keys.integer("rope.dimension_count"));
  rope.rotated_dim = rotated.value_or(config->head_dim) == config->head_dim ? 0 : *rotated;
  OUTRIDER_RETURN_IF_ERROR(read_gguf_scaling(file, keys, config->max_context, &rope.scaling));
  OUTRIDER_TRY(const auto temperature, keys.number("attention.temperature_scale"));
  config->query_temperature = {.beta = temperature.value_or(0),
                               .original_context = rope.scaling.original_context};
  return read_window_rope(keys, family, config);
}

}  // namespace outrider
