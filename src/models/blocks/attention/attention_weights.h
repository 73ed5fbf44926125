// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "formats/model_config.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"

namespace outrider {

struct AttentionWeights {
  Projection qkv;                     // queries, keys, values; only queries where LayerPlace splits them
  Projection kv;                      // keys and values where they are split from the queries, else empty
  std::vector<float> q_norm, k_norm;  // [head_dim] or [heads * head_dim]; or empty
  std::vector<float> v_norm;          // [head_dim] ones, or empty
  std::vector<float> sinks;           // [head_count], see AttentionArgs, or empty
  Projection attention_output;
  Projection output_gate;  // or empty

  void list(WeightList& weights) const;
};

Status load_attention(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      AttentionWeights& weights);

}  // namespace outrider
