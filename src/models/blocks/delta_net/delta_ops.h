// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "formats/kinds/delta_net.h"
#include "formats/model_config.h"
#include "models/backend/host/layer_ops.h"
#include "models/blocks/state_plan.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"

namespace outrider {

// A gated delta net (arXiv 2412.06464), the layer of Qwen3-Next and Qwen3.5. Queries, keys and values pass a
// short convolution. Every value head has a matrix of state, which decays and then moves, by a rate, towards
// answering the entry's key with its value; the row's query reads it. All of that depends only on one entry,
// so the numbers that a projection makes of it are its update: queries, keys, values, then a rate and a decay
// for each value head.
struct DeltaWeights {
  Projection input;         // [update_size + value_size, hidden_size]: the update, and gates of the output
  std::vector<float> taps;  // [taps, conv_size], the oldest entry's first
  std::vector<float> time_bias;  // [value_heads]
  std::vector<float> decay;      // [value_heads], negative
  std::vector<float> norm;       // [value_dim]
  Projection output;             // [hidden_size, value_size]
};

Status load_delta_net(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      DeltaWeights& net);

// Norms that give queries the length 1 / sqrt(key_dim), and keys the length one, as weights of RMS norms
// [key_dim] with this epsilon.
std::vector<float> query_scale(const DeltaTraits& traits);
std::vector<float> key_scale(const DeltaTraits& traits);
float key_epsilon(const DeltaTraits& traits);

// The rows of a pass in one of these layers.
struct DeltaRows {
  float* projected = nullptr;  // [rows, update_size + value_size], changed in place
  float* y = nullptr;          // [rows, value_size]
};

// The step of these layers on this machine, with the scratch that all of them share.
class DeltaOps {
 public:
  // `epsilon`: of the norm of outputs. `ops` must outlive it.
  DeltaOps(const DeltaTraits& traits, float epsilon, const LayerOps& ops);

  // y = what every row reads from the states after its own entry, normalised and gated. Applies committed
  // updates to the states, and updates of chains.
  void run(const DeltaWeights& net, const StatePlan& plan, const DeltaRows& rows, const LayerStates& states);

 private:
  // A worker's memory of the nodes of a sequence while it follows one key head.
  struct Scratch {
    std::vector<float> convolved;  // [nodes, 2 key_dim + value heads of the key head * value_dim]
    std::vector<float> states;     // [slots], each as in DeltaArgs
    std::vector<DeltaArgs> steps;  // [nodes] of one value head
  };
  friend class DeltaShare;

  OperationCost cost_of(const StatePlan& plan) const;

  const DeltaTraits traits_;
  const float epsilon_;
  const LayerOps& ops_;
  std::vector<float> query_scale_, key_scale_;  // [key_dim]: norms of queries and keys as RMS norms
  std::vector<Scratch> scratch_;                // by worker
};

}  // namespace outrider
