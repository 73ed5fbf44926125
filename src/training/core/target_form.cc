// SPDX-License-Identifier: Apache-2.0
#include "training/core/target_form.h"

namespace outrider::training {

bool has_llama_form(const ModelConfig& config) {
  const ScaleTraits& scales = config.scales;
  const bool has_norms = config.norm.kind == NormKind::kRms && config.norm.has_inputs() &&
                         !config.norm.has_outputs() && !config.norm.adds_one &&
                         (config.qk_norm == QkNorm::kNone || config.qk_norm == QkNorm::kHead);
  const bool has_mlp = config.mlp.is_gated && config.mlp.activation == Activation::kSilu &&
                       config.block == BlockKind::kSequential && config.experts.count == 0;
  const bool has_scales =
      scales.embedding == 1 && scales.residual == 1 && scales.attention == 0 && scales.logits == 1;
  const bool has_attention = config.layer_traits.size() == 1 && config.layer_traits.front().rope == 0 &&
                             config.attention_softcap == 0 && config.logit_softcap == 0 &&
                             config.query_temperature.beta == 0;
  const RopeTraits& rope = config.ropes.front();
  const bool has_rope = rope.rotated_dim == 0 && rope.turning_part == 1 &&
                        rope.scaling.attention_factor == 1 && rope.scaling.kind != RopeScalingKind::kDynamic;
  return has_norms && has_mlp && has_scales && has_attention && has_rope;
}

RopeTraits drafter_rope(const ModelConfig& target) {
  if (has_llama_form(target)) return target.ropes.front();
  RopeTraits plain;
  plain.theta = target.ropes.front().theta;
  return plain;
}

int64_t last_attention_layer(const ModelConfig& config) {
  for (int64_t i = config.layer_count - 1; i >= 0; --i)
    if (config.traits_of(i).kind == &kAttentionKind) return i;
  return config.layer_count - 1;
}

}  // namespace outrider::training
