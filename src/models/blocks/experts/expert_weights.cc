// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/experts/expert_weights.h"

#include <cmath>
#include <string>

namespace outrider {
namespace {

// The norms of a mixture of experts that has its own, and the factors of its weights.
Status load_expert_norms(WeightLoader& loader, const ModelConfig& config, const std::string& mlp,
                         ExpertWeights& weights) {
  const auto read = [&](const char* name, Norm& norm) {
    return load_norm(loader, config.norm, mlp + name, config.hidden_size, norm);
  };
  OUTRIDER_RETURN_IF_ERROR(read("gate_norm", weights.router_norm));
  const float scale = 1 / std::sqrt(static_cast<float>(config.hidden_size));
  for (float& weight : weights.router_norm.weight) weight *= scale;
  OUTRIDER_RETURN_IF_ERROR(read("experts_norm", weights.input_norm));
  OUTRIDER_RETURN_IF_ERROR(read("experts_output_norm", weights.output_norm));
  OUTRIDER_RETURN_IF_ERROR(read("dense_output_norm", weights.dense_output_norm));
  return loader.read_vector(mlp + "expert_scales.weight", config.experts.count, weights.scales);
}

}  // namespace

void ExpertWeights::list(WeightList& weights) const {
  for (const Projection* projection : {&router, &dense_gate}) weights.projections.push_back(projection);
  for (const MlpWeights& expert : experts) expert.list(weights);
  for (const auto matrices : {&MlpWeights::gate_up, &MlpWeights::down}) {
    if (!experts.empty()) weights.stacks.push_back(stack(matrices));
  }
  weights.choices.push_back(&router);
  for (const MlpWeights& expert : experts)
    weights.choices.insert(weights.choices.end(), {&expert.gate_up, &expert.down});
  for (const Norm* norm : {&router_norm, &input_norm, &output_norm, &dense_output_norm})
    weights.norms.push_back(norm);
  for (const std::vector<float>* numbers : {&choice_bias, &scales}) weights.numbers.push_back(numbers);
}

std::vector<const Projection*> ExpertWeights::stack(Projection MlpWeights::*matrices) const {
  std::vector<const Projection*> stack;
  for (const MlpWeights& expert : experts) stack.push_back(&(expert.*matrices));
  return stack;
}

int64_t ExpertWeights::bytes_of_expert() const {
  int64_t bytes = 0;
  for (const MlpWeights& expert : experts) bytes += expert.gate_up.bytes() + expert.down.bytes();
  return bytes / std::ssize(experts);
}

Status load_experts(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                    ExpertWeights& weights) {
  const ExpertTraits& traits = config.experts;
  const std::string mlp = place.prefix + "mlp.";
  // Routing in less than f32 would choose other experts.
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{mlp + "gate", traits.count, DType::kF32}}, config.hidden_size,
                                       traits.router_bias, weights.router));
  if (config.has_dense_mlp(place.index) && traits.gates_dense) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan({{mlp + "shared_expert_gate", 1, DType::kF32}}, config.hidden_size,
                                         /*bias=*/false, weights.dense_gate));
  }
  if (traits.choice_bias)
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(mlp + "choice.bias", traits.count, weights.choice_bias));
  if (traits.has_own_norms) OUTRIDER_RETURN_IF_ERROR(load_expert_norms(loader, config, mlp, weights));
  weights.experts.resize(static_cast<size_t>(traits.count));
  for (size_t i = 0; i < weights.experts.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(
        load_mlp(loader, config, {mlp + "experts.", "." + std::to_string(i), traits.ffn_size, traits.bias},
                 weights.experts[i]));
  }
  return {};
}

}  // namespace outrider
