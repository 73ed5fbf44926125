// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/dense_mlp/mlp_weights.h"

namespace outrider {

void MlpWeights::list(WeightList& weights) const {
  for (const Projection* projection : {&gate_up, &down}) weights.projections.push_back(projection);
}

Status load_mlp(WeightLoader& loader, const ModelConfig& config, const MlpPlace& place, MlpWeights& weights) {
  const Shard shard = loader.part().shard;
  std::vector<WeightLoader::Part> inputs = {{place.begin + "up_proj" + place.end, place.ffn_size}};
  if (config.mlp.is_gated)
    inputs.insert(inputs.begin(), {place.begin + "gate_proj" + place.end, place.ffn_size});
  for (WeightLoader::Part& part : inputs) {
    if (!shard.is_whole()) part.rows = {shard.of(place.ffn_size)};
  }
  OUTRIDER_RETURN_IF_ERROR(loader.plan(inputs, config.hidden_size, place.bias, weights.gate_up));
  return loader.plan_cut({place.begin + "down_proj" + place.end, config.hidden_size},
                         shard.cut(place.ffn_size), place.bias, weights.down);
}

}  // namespace outrider
