// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/model_config.h"
#include "models/weights/weight_list.h"

namespace outrider {

struct MlpWeights {
  Projection gate_up;  // [2 * ffn_size, hidden_size], gate first; [ffn_size, hidden_size] without a gate
  Projection down;     // [hidden_size, ffn_size]

  void list(WeightList& weights) const;
};

// `begin` and `end` are around the names of the matrices; one of many MLPs has its number in `end`.
struct MlpPlace {
  std::string begin;
  std::string end;
  int64_t ffn_size = 0;
  bool bias = false;
};

Status load_mlp(WeightLoader& loader, const ModelConfig& config, const MlpPlace& place, MlpWeights& weights);

}  // namespace outrider
