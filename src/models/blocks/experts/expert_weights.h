// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/blocks/dense_mlp/mlp_weights.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"

namespace outrider {

// A layer's mixture of experts. Where shards divide the layer, each has a part of the outputs of both
// products of every expert.
struct ExpertWeights {
  Projection router;               // [experts, hidden_size], f32
  std::vector<float> choice_bias;  // [experts], or empty
  std::vector<MlpWeights> experts;
  Projection dense_gate;  // [1, hidden_size], f32; or empty: the dense MLP beside the experts has no gate
  // The next five are empty but for ExpertTraits::has_own_norms.
  Norm router_norm;           // of the residual stream [hidden_size]
  Norm input_norm;            // of the residual stream [hidden_size]
  Norm output_norm;           // of what the experts add [hidden_size]
  Norm dense_output_norm;     // of what the dense MLP adds [hidden_size]
  std::vector<float> scales;  // [experts], factors of weights

  void list(WeightList& weights) const;
  // One product of all experts.
  std::vector<const Projection*> stack(Projection MlpWeights::*matrices) const;
  int64_t bytes_of_expert() const;  // mean over the experts
  // How shards divide the products of every expert alike; empty: one has all.
  const ProductCut& cut() const { return experts.front().down.cut; }
};

Status load_experts(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                    ExpertWeights& weights);

}  // namespace outrider
