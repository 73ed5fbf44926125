// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_experts.h"

#include <algorithm>
#include <string>
#include <vector>

namespace outrider {
namespace {

const TensorView* find_tensor(const GgufFile& file, int64_t layer, const char* name) {
  const auto found = file.tensors.find("blk." + std::to_string(layer) + "." + name);
  return found == file.tensors.end() ? nullptr : &found->second;
}

// The traits of the layer's MLPs, by the tensors that it has.
LayerTraits expert_layer(const GgufFile& file, int64_t layer, LayerTraits traits) {
  if (find_tensor(file, layer, "ffn_gate_inp.weight") == nullptr) return traits;
  const TensorView* shared = find_tensor(file, layer, "ffn_down_shexp.weight");
  traits.mlp = shared == nullptr ? &kExpertsKind : &kExpertsAndDenseKind;
  if (shared != nullptr) traits.ffn_size = shared->shape.back();
  return traits;
}

// How outputs of the router become weights. Where a file does not say so, a bias of the choice tells of
// sigmoids: GLM-4.7-Flash has one, DeepSeek V2 has none.
Status read_weights(const ArchitectureKeys& keys, ExpertTraits* experts) {
  OUTRIDER_TRY(const auto scale, keys.number("expert_weights_scale"));
  OUTRIDER_TRY(const auto groups, keys.integer("expert_group_count"));
  OUTRIDER_TRY(const auto used_groups, keys.integer("expert_group_used_count"));
  OUTRIDER_TRY(const auto normalizes, keys.boolean("expert_weights_norm"));
  if (scale.value_or(0) != 0) experts->scale = *scale;
  experts->groups = groups.value_or(1);
  experts->used_groups = used_groups.value_or(experts->groups);
  constexpr int64_t kSigmoids = 2, kSoftmaxOfChosen = 3;  // expert_gating_func; 1: softmax
  OUTRIDER_TRY(const auto gates, keys.integer("expert_gating_func"));
  if (gates && (*gates < 0 || *gates > kSoftmaxOfChosen))
    return keys.fail("expert_gating_func must be 1, 2 or 3, found " + std::to_string(*gates));
  if (gates ? *gates == kSigmoids : experts->choice_bias) experts->weights = RouterWeights::kSigmoidOfChosen;
  if (experts->weights == RouterWeights::kSigmoidOfChosen && !normalizes.value_or(true))
    experts->weights = RouterWeights::kSigmoid;
  return {};
}

}  // namespace

Status read_gguf_experts(const GgufFile& file, const ArchitectureKeys& keys, const ModelFamily& family,
                         ModelConfig* config) {
  constexpr int64_t kMaxLayers = 1024;  // validate() has the message for more
  OUTRIDER_TRY(const auto count, keys.integer("expert_count"));
  if (count.value_or(0) == 0) return {};
  if (!family.has_experts) return keys.fail("mixtures of experts are not supported in this architecture");
  ExpertTraits& experts = config->experts;
  experts.count = *count;
  OUTRIDER_TRY(experts.used, keys.require_integer("expert_used_count"));
  std::vector<LayerTraits> layers;
  int64_t first = -1;  // layer with experts
  for (int64_t i = 0; i < std::min(config->layer_count, kMaxLayers); ++i) {
    layers.push_back(expert_layer(file, i, config->traits_of(i)));
    if (first < 0 && layers.back().mlp != &kDenseMlpKind) first = i;
  }
  config->set_layer_traits(std::move(layers));
  const TensorView* down = first < 0 ? nullptr : find_tensor(file, first, "ffn_down_exps.weight");
  if (down == nullptr || down->shape.size() != 3)
    return keys.fail("tensor blk." + std::to_string(std::max<int64_t>(first, 0)) +
                     ".ffn_down_exps.weight [experts, hidden size, feed-forward size] is missing");
  experts.ffn_size = down->shape.back();
  experts.choice_bias = find_tensor(file, first, "exp_probs_b.bias") != nullptr;
  OUTRIDER_RETURN_IF_ERROR(read_weights(keys, &experts));
  experts.router_bias = find_tensor(file, first, "ffn_gate_inp.bias") != nullptr;
  experts.bias = find_tensor(file, first, "ffn_down_exps.bias") != nullptr;
  experts.gates_dense = find_tensor(file, first, "ffn_gate_inp_shexp.weight") != nullptr;
  return {};
}

}  // namespace outrider
