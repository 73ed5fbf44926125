// SPDX-License-Identifier: Apache-2.0
#include "formats/latent_traits.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "base/quote.h"
#include "formats/expert_traits.h"
#include "formats/family_traits.h"

namespace outrider {
namespace {

Result<int64_t> positive(const JsonObject& root, std::string_view key, int64_t usual) {
  OUTRIDER_TRY(const auto value, root.integer(key));
  return value.value_or(usual);
}

// Error: the key has another value.
Status expect_one_of(const JsonObject& root, std::string_view key,
                     std::span<const std::string_view> supported) {
  OUTRIDER_TRY(const auto found, root.string(key));
  if (!found || std::ranges::find(supported, *found) != supported.end()) return {};
  std::string names;
  for (const std::string_view name : supported) names += (names.empty() ? "" : " or ") + quote(name);
  return root.fail(quote(key) + " must be " + names + ", found " + quote(*found));
}

// Error: experts are chosen by another rule, or layers from the first sparse one on take turns with dense
// ones.
Status check_choice(const JsonObject& root, std::string_view scores,
                    std::span<const std::string_view> methods) {
  OUTRIDER_RETURN_IF_ERROR(expect_one_of(root, "scoring_func", {&scores, 1}));
  OUTRIDER_RETURN_IF_ERROR(expect_one_of(root, "topk_method", methods));
  OUTRIDER_TRY(const auto period, root.integer("moe_layer_freq"));
  if (period.value_or(1) == 1) return {};
  return root.fail("'moe_layer_freq' must be 1, found " + std::to_string(*period));
}

Status read_latent(const JsonObject& root, ModelConfig* config) {
  LatentTraits& latent = config->latent;
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "attention_bias"));
  OUTRIDER_TRY(const bool has_pairs, flag(root, "rope_interleave", true));
  if (!has_pairs) return root.fail("'rope_interleave' must be true");
  OUTRIDER_TRY(const auto query_rank, root.integer("q_lora_rank"));
  latent.query_rank = query_rank.value_or(0);
  OUTRIDER_TRY(latent.rank, positive(root, "kv_lora_rank", 512));
  OUTRIDER_TRY(latent.plain_dim, positive(root, "qk_nope_head_dim", 128));
  OUTRIDER_TRY(latent.rope_dim, positive(root, "qk_rope_head_dim", 64));
  OUTRIDER_TRY(latent.value_dim, positive(root, "v_head_dim", 128));
  if (latent.rank < 1) return root.fail("'kv_lora_rank' must be positive");
  OUTRIDER_TRY(auto rope, root.object("rope_parameters"));
  if (!rope) {
    OUTRIDER_TRY(rope, root.object("rope_scaling"));
  }
  double magnitude = 0;
  if (rope) {
    OUTRIDER_TRY(const auto stated, rope->number("mscale_all_dim"));
    magnitude = stated.value_or(0);
  }
  derive_latent_attention(magnitude, config);
  return {};
}

}  // namespace

void derive_latent_attention(double magnitude, ModelConfig* config) {
  const LatentTraits& latent = config->latent;
  config->head_dim = latent.entry_size();
  config->kv_head_count = 1;
  RopeTraits& rope = config->ropes.front();
  rope.rotated_dim = latent.rope_dim;
  double scale = 1 / std::sqrt(static_cast<double>(latent.query_dim()));
  if (magnitude != 0 && rope.scaling.kind != RopeScalingKind::kNone && rope.scaling.factor > 1) {
    const double mscale = 0.1 * magnitude * std::log(rope.scaling.factor) + 1;
    scale *= mscale * mscale;
  }
  config->scales.attention = scale;
}

Status read_deepseek_v2_traits(const JsonObject& root, ModelConfig* config) {
  constexpr std::string_view kMethods[] = {"greedy", "group_limited_greedy"};
  OUTRIDER_RETURN_IF_ERROR(refuse(root, "norm_topk_prob"));
  OUTRIDER_RETURN_IF_ERROR(check_choice(root, "softmax", kMethods));
  OUTRIDER_RETURN_IF_ERROR(read_glm4_moe_traits(root, config));
  OUTRIDER_TRY(const auto method, root.string("topk_method"));
  ExpertTraits& experts = config->experts;
  experts.weights = RouterWeights::kSoftmax;
  experts.ranks_groups_by_best = true;
  if (method.value_or("greedy") == "greedy") experts.groups = experts.used_groups = 1;
  return read_latent(root, config);
}

Status read_deepseek_v3_traits(const JsonObject& root, ModelConfig* config) {
  constexpr std::string_view kMethods[] = {"noaux_tc"};
  OUTRIDER_RETURN_IF_ERROR(check_choice(root, "sigmoid", kMethods));
  OUTRIDER_RETURN_IF_ERROR(read_glm4_moe_traits(root, config));
  return read_latent(root, config);
}

}  // namespace outrider
