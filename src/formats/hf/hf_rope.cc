// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_rope.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/portable_math.h"
#include "base/quote.h"

namespace outrider {
namespace {

// A key that is not in the object of the scaling may stand beside it.
Result<std::optional<double>> inner_or_outer(const JsonObject& root, const JsonObject* rope,
                                             std::string_view key) {
  return (rope != nullptr && rope->contains(key) ? *rope : root).number(key);
}

Result<std::vector<float>> read_divisors(const JsonObject& rope, std::string_view key) {
  OUTRIDER_TRY(const auto list, rope.array(key));
  std::vector<float> divisors;
  if (!list) return rope.fail("RoPE scaling 'longrope' needs " + std::string(key));
  for (const simdjson::dom::element element : *list) {
    double divisor = 0;
    if (element.get(divisor) != simdjson::SUCCESS) return rope.wrong_type(key, "a list of numbers");
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

Status read_llama3(const JsonObject& rope, RopeScaling* scaling) {
  OUTRIDER_TRY(const auto low, rope.number("low_freq_factor"));
  OUTRIDER_TRY(const auto high, rope.number("high_freq_factor"));
  OUTRIDER_TRY(const auto original, rope.integer("original_max_position_embeddings"));
  if (!low || !high || !original) {
    return rope.fail(
        "RoPE scaling 'llama3' needs low_freq_factor, high_freq_factor and "
        "original_max_position_embeddings");
  }
  scaling->low_freq_factor = *low;
  scaling->high_freq_factor = *high;
  scaling->original_context = *original;
  return {};
}

double yarn_magnitude(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * portable_log(factor) + 1.0;
}

Status read_yarn(const JsonObject& rope, RopeScaling* scaling) {
  OUTRIDER_TRY(const auto fast, rope.number("beta_fast"));
  OUTRIDER_TRY(const auto slow, rope.number("beta_slow"));
  OUTRIDER_TRY(const auto truncates, rope.boolean("truncate"));
  OUTRIDER_TRY(const auto stated, rope.number("attention_factor"));
  OUTRIDER_TRY(const auto magnitude, rope.number("mscale"));
  OUTRIDER_TRY(const auto magnitude_of_all, rope.number("mscale_all_dim"));
  scaling->beta_fast = fast.value_or(0) != 0 ? *fast : 32;
  scaling->beta_slow = slow.value_or(0) != 0 ? *slow : 1;
  scaling->truncates_range = truncates.value_or(true);
  const bool has_both = magnitude.value_or(0) != 0 && magnitude_of_all.value_or(0) != 0;
  scaling->attention_factor = stated     ? *stated
                              : has_both ? yarn_magnitude(scaling->factor, *magnitude) /
                                               yarn_magnitude(scaling->factor, *magnitude_of_all)
                                         : yarn_magnitude(scaling->factor, 1);
  return {};
}

Status read_longrope(const JsonObject& rope, RopeScaling* scaling) {
  OUTRIDER_TRY(scaling->frequency_divisors, read_divisors(rope, "short_factor"));
  OUTRIDER_TRY(scaling->long_divisors, read_divisors(rope, "long_factor"));
  OUTRIDER_TRY(const auto stated, rope.number("attention_factor"));
  const double original = static_cast<double>(scaling->original_context);
  const double derived =
      scaling->factor <= 1 ? 1.0 : std::sqrt(1 + portable_log(scaling->factor) / portable_log(original));
  scaling->attention_factor = stated.value_or(derived);
  return {};
}

// The kind of the scaling. Phi-3 calls LongRoPE "su" or "yarn" in some files.
Result<RopeScalingKind> scaling_kind(const JsonObject& rope) {
  OUTRIDER_TRY(auto type, rope.string("rope_type"));
  if (!type) {
    OUTRIDER_TRY(type, rope.string("type"));
  }
  if (!type || *type == "default") return RopeScalingKind::kNone;
  if (*type == "linear") return RopeScalingKind::kLinear;
  if (*type == "proportional")
    return rope.contains("factor") ? RopeScalingKind::kLinear : RopeScalingKind::kNone;
  if (*type == "dynamic") return RopeScalingKind::kDynamic;
  if (*type == "llama3") return RopeScalingKind::kLlama3;
  if (*type == "longrope" || *type == "su") return RopeScalingKind::kLongRope;
  if (*type == "yarn")
    return rope.contains("short_factor") ? RopeScalingKind::kLongRope : RopeScalingKind::kYarn;
  return rope.fail("RoPE scaling " + quote(*type) +
                   " is not supported; default, linear, dynamic, llama3, yarn and longrope are");
}

Status read_scaling(const JsonObject& root, const JsonObject& rope, const ModelConfig& config,
                    RopeScaling* scaling) {
  OUTRIDER_TRY(scaling->kind, scaling_kind(rope));
  if (scaling->kind == RopeScalingKind::kNone) return {};
  // Phi-3 states the original context outside, and this one counts.
  OUTRIDER_TRY(auto original, root.integer("original_max_position_embeddings"));
  if (!original) {
    OUTRIDER_TRY(original, rope.integer("original_max_position_embeddings"));
  }
  if (scaling->kind == RopeScalingKind::kDynamic) original = config.max_context;
  if (scaling->kind != RopeScalingKind::kLinear)
    scaling->original_context = original.value_or(config.max_context);
  if (scaling->original_context < 1) return rope.fail("original_max_position_embeddings must be positive");
  OUTRIDER_TRY(const auto factor, rope.number("factor"));
  const bool may_derive =
      scaling->kind == RopeScalingKind::kYarn || scaling->kind == RopeScalingKind::kLongRope;
  if (!factor && !may_derive) return rope.fail("the RoPE scaling needs a factor");
  scaling->factor = factor.value_or(static_cast<double>(config.max_context) /
                                    static_cast<double>(scaling->original_context));
  switch (scaling->kind) {
    case RopeScalingKind::kLlama3:
      return read_llama3(rope, scaling);
    case RopeScalingKind::kYarn:
      return read_yarn(rope, scaling);
    case RopeScalingKind::kLongRope:
      return read_longrope(rope, scaling);
    default:
      return {};
  }
}

// Values for absent keys.
struct RopeDefaults {
  double theta = 10000;
  double rotated_part = 1;
};

// rope: the object of its parameters or of its scaling; null: there is none.
Result<RopeTraits> read_rope(const JsonObject& root, const JsonObject* rope, const RopeDefaults& defaults,
                             const ModelConfig& config) {
  RopeTraits traits;
  OUTRIDER_TRY(const auto theta, inner_or_outer(root, rope, "rope_theta"));
  traits.theta = theta.value_or(defaults.theta);
  OUTRIDER_TRY(const auto partial, inner_or_outer(root, rope, "partial_rotary_factor"));
  const double part = partial.value_or(defaults.rotated_part);
  if (!(part > 0 && part <= 1)) {
    return root.fail("partial_rotary_factor must be above 0 and at most 1, found " + std::to_string(part));
  }
  bool is_proportional = false;
  if (rope != nullptr) {
    OUTRIDER_TRY(const auto type, rope->string("rope_type"));
    is_proportional = type.value_or("") == "proportional";
  }
  if (is_proportional) {
    traits.turning_part = part;
  } else if (part < 1) {
    traits.rotated_dim = static_cast<int64_t>(static_cast<double>(config.head_dim) * part);
  }
  if (rope != nullptr) OUTRIDER_RETURN_IF_ERROR(read_scaling(root, *rope, config, &traits.scaling));
  return traits;
}

// One RoPE for layers that see all positions, one for layers with a window. The older spelling has one
// object, which is the former's.
Status read_ropes_by_window(const JsonObject& root, const JsonObject* rope, const ModelFamily& family,
                            ModelConfig* config) {
  std::optional<JsonObject> full, sliding;
  if (rope != nullptr) {
    OUTRIDER_TRY(full, rope->object("full_attention"));
    OUTRIDER_TRY(sliding, rope->object("sliding_attention"));
  }
  OUTRIDER_TRY(const RopeTraits of_full,
               read_rope(root, full ? &*full : rope, {.theta = family.rope_theta}, *config));
  config->ropes = {of_full};
  const auto slides = [](const LayerTraits& layer) { return layer.window != 0; };
  if (std::ranges::none_of(config->layer_traits, slides)) return {};
  RopeTraits of_sliding;
  if (sliding) {
    OUTRIDER_TRY(of_sliding, read_rope(root, &*sliding, {.theta = family.window_rope_theta}, *config));
  } else {
    OUTRIDER_TRY(const auto theta, root.number("rope_local_base_freq"));
    of_sliding.theta = theta.value_or(family.window_rope_theta);
  }
  config->ropes.push_back(of_sliding);
  for (LayerTraits& layer : config->layer_traits) layer.rope = slides(layer) ? 1 : 0;
  return {};
}

}  // namespace

Status read_hf_ropes(const JsonObject& root, const ModelFamily& family, ModelConfig* config) {
  OUTRIDER_TRY(auto parameters, root.object("rope_parameters"));
  if (!parameters) {
    OUTRIDER_TRY(parameters, root.object("rope_scaling"));
  }
  const JsonObject* rope = parameters ? &*parameters : nullptr;
  const RopeDefaults defaults{.theta = family.rope_theta, .rotated_part = family.rotated_part};
  if (family.window_rope_theta != 0) {
    OUTRIDER_RETURN_IF_ERROR(read_ropes_by_window(root, rope, family, config));
  } else {
    OUTRIDER_TRY(config->ropes.front(), read_rope(root, rope, defaults, *config));
  }
  const RopeScaling& scaling = config->ropes.front().scaling;
  if (scaling.kind == RopeScalingKind::kDynamic || scaling.kind == RopeScalingKind::kYarn) {
    const double longest = static_cast<double>(scaling.original_context) * scaling.factor;
    if (longest > static_cast<double>(config->max_context) && longest < static_cast<double>(int64_t{1} << 40))
      config->max_context = static_cast<int64_t>(longest);
  }
  return {};
}

}  // namespace outrider
