// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "formats/layer_kind.h"
#include "formats/number_limit.h"
#include "formats/tensor_list.h"

namespace outrider {
namespace {

// The names of one MLP: `end` follows the names of its matrices.
struct MlpNames {
  std::string begin;
  std::string end;
};

void append_mlp(const ModelConfig& config, const MlpNames& names, int64_t ffn_size, bool bias,
                TensorList& list) {
  if (config.mlp.is_gated)
    list.matrix(names.begin + "gate_proj" + names.end, ffn_size, config.hidden_size, bias);
  list.matrix(names.begin + "up_proj" + names.end, ffn_size, config.hidden_size, bias);
  list.matrix(names.begin + "down_proj" + names.end, config.hidden_size, ffn_size, bias);
}

void append_dense_mlp(const ModelConfig& config, int64_t layer, const std::string& prefix, TensorList& list) {
  append_mlp(config, {prefix + "mlp.", ""}, config.sizes_of(layer).ffn_size, config.mlp.bias, list);
}

void append_experts(const ModelConfig& config, int64_t /*layer*/, const std::string& prefix,
                    TensorList& list) {
  const ExpertTraits& experts = config.experts;
  const std::string mlp = prefix + "mlp.";
  if (experts.has_own_norms) {
    list.vector(mlp + "gate_norm", config.hidden_size);
    list.vector(mlp + "experts_norm", config.hidden_size);
    list.vector(mlp + "experts_output_norm", config.hidden_size);
    list.vector(mlp + "dense_output_norm", config.hidden_size);
    list.vector(mlp + "expert_scales", experts.count);
  }
  if (experts.choice_bias) list.bias(mlp + "choice", experts.count);
  list.matrix(mlp + "gate", experts.count, config.hidden_size, experts.router_bias);
  for (int64_t i = 0; i < experts.count; ++i)
    append_mlp(config, {mlp + "experts.", "." + std::to_string(i)}, experts.ffn_size, experts.bias, list);
}

void append_experts_and_dense(const ModelConfig& config, int64_t layer, const std::string& prefix,
                              TensorList& list) {
  append_dense_mlp(config, layer, prefix, list);
  if (config.experts.gates_dense) list.matrix(prefix + "mlp.shared_expert_gate", 1, config.hidden_size);
  append_experts(config, layer, prefix, list);
}

Status validate_experts(const ModelConfig& config) {
  const ExpertTraits& experts = config.experts;
  const NumberLimit limits[] = {
      {"the number of experts", experts.count, 1, kMaxExperts},
      {"the number of experts that a row uses", experts.used, 1, experts.count},
      {"the feed-forward size of experts", experts.ffn_size, 1, int64_t{1} << 22},
      {"the number of groups of experts", experts.groups, 1, experts.count},
      {"the number of groups that a row uses", experts.used_groups, 1, experts.groups},
  };
  OUTRIDER_RETURN_IF_ERROR(check_limits(limits));
  if (!std::isfinite(experts.scale) || experts.scale <= 0)
    return input_error("model configuration: the factor of experts' weights must be positive");
  const int64_t in_group = experts.count / experts.groups;
  if (experts.groups == 1 || (experts.count % experts.groups == 0 && in_group >= 2 &&
                              experts.used <= in_group * experts.used_groups))
    return {};
  return input_error("model configuration: " + std::to_string(experts.used) + " of " +
                     std::to_string(experts.count) + " experts cannot be chosen from " +
                     std::to_string(experts.used_groups) + " of " + std::to_string(experts.groups) +
                     " groups");
}

}  // namespace

constinit const LayerKind kDenseMlpKind = {.name = "dense_mlp", .append_tensors = append_dense_mlp};

constinit const LayerKind kExpertsKind = {
    .name = "experts", .validate = validate_experts, .append_tensors = append_experts};

constinit const LayerKind kExpertsAndDenseKind = {
    .name = "experts_and_dense", .validate = validate_experts, .append_tensors = append_experts_and_dense};

}  // namespace outrider
