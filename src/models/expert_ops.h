// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/expert_routing.h"
#include "models/layer_ops.h"
#include "models/weights/expert_stream.h"
#include "models/weights/weight_loader.h"

namespace outrider {

// An expert; where shards divide the layer, each has a part of the outputs of both products of every expert.
struct Expert {
  Projection gate_up;  // [2 * ffn_size, hidden_size], gate first; [ffn_size, hidden_size] without a gate
  Projection down;     // [hidden_size, ffn_size]
};

// A layer's mixture of experts.
struct ExpertLayer {
  Projection router;               // [experts, hidden_size], f32
  std::vector<float> choice_bias;  // [experts], or empty
  std::vector<Expert> experts;
  Projection dense_gate;  // [1, hidden_size], f32; or empty: the dense MLP beside the experts has no gate
  // The next five are empty but for ExpertTraits::has_own_norms.
  Norm router_norm;           // of the residual stream [hidden_size]
  Norm input_norm;            // of the residual stream [hidden_size]
  Norm output_norm;           // of what the experts add [hidden_size]
  Norm dense_output_norm;     // of what the dense MLP adds [hidden_size]
  std::vector<float> scales;  // [experts], factors of weights

  int64_t parameter_count() const;
  int64_t bytes() const;
  int64_t bytes_of_expert() const;  // mean over the experts
  // How shards divide the products of every expert alike; empty: one has all.
  const ProductCut& cut() const { return experts.front().down.cut; }
};

// Runs mixtures of experts over the rows of a pass. The rows of an expert are gathered, so that a pass reads
// the weights of each expert once; then the outputs of each row are added, best choice first. The bits of a
// row do not depend on the experts that other rows choose, because products treat every row alike. Shards
// gather the inputs of the second product, and the sums of outputs, which each makes for its own features in
// the same order, so that no bit depends on their number.
class ExpertOps {
 public:
  // Both must outlive it.
  ExpertOps(const ModelConfig& config, LayerOps& ops) : config_(config), ops_(ops) {}

  // Makes room for passes of `rows` rows.
  void reserve(const ExpertLayer& layer, int64_t rows);
  struct Inputs {
    const float* router = nullptr;  // [rows, hidden_size]
    const float* x = nullptr;       // [rows, hidden_size], of the experts
  };
  // Where the experts' matrices come from.
  struct Source {
    ExpertStream* stream = nullptr;  // null: they are in memory
    int64_t layer = 0;               // of the stream
  };
  // y[rows, hidden_size] = the weighted sum of the experts that each row chooses. Precondition: reserve() for
  // this layer and as many rows. Throws ReadFailure.
  void run(const ExpertLayer& layer, const Inputs& inputs, float* y, int64_t rows, const Source& source);
  // The experts that the last run woke.
  int64_t woken() const { return std::ssize(groups_.groups()); }

 private:
  // One expert's part of a product: rows that follow one another times one matrix.
  struct Product {
    LinearArgs args;
    bool packs = false;  // its inputs are not yet packed for an earlier part
  };

  void route(const ExpertLayer& layer, const float* x, int64_t rows);
  void gather(const float* x, int64_t rows);
  using Groups = std::span<const ExpertGroups::Group>;
  // Results of the groups' places.
  void compute(const ExpertLayer& layer, Groups groups);
  // As compute(), a group as soon as its expert has been read.
  void compute_read(const ExpertLayer& layer, const Source& source);
  void activate(const ExpertLayer& layer, Groups groups);
  // The inputs and outputs of a product, [places, k] and [places, n].
  struct PlaceRows {
    const float* x = nullptr;
    float* y = nullptr;
  };
  // y = the inputs of the groups' places times the matrices of their experts, plus biases.
  void multiply(const ExpertLayer& layer, Projection Expert::*matrices, Groups groups, PlaceRows rows);
  OperationCost cost_of_products() const;
  void list_products(const ExpertLayer& layer, Projection Expert::*matrices, Groups groups, PlaceRows rows);
  void finish_rows(const ExpertLayer& layer, Projection Expert::*matrices, Groups groups, float* y);
  // y[rows, outputs of a place] = the weighted sums of the results
  void combine(const ExpertLayer& layer, float* y, int64_t rows);

  const ModelConfig& config_;
  LayerOps& ops_;
  ExpertGroups groups_;
  std::vector<ExpertChoice> choices_;  // [rows, used]
  std::vector<Product> products_;
  std::vector<int32_t> woken_;               // experts of all groups
  std::vector<ExpertGroups::Group> loaded_;  // groups whose experts are readable

  // Scratch, one row per place.
  Scratch outputs_;   // [rows, experts]: of the router
  Scratch inputs_;    // [places, hidden_size]
  Scratch gate_up_;   // [places, gate_up.n]
  Scratch gated_;     // [places, ffn_size], of this shard
  Scratch whole_;     // [places, ffn_size], of all shards
  Scratch results_;   // [places, down.n]
  Scratch sums_;      // [rows, down.n], of a shard
  Scratch parts_;     // [places, n], part after part for each expert, where a projection has several
  Scratch packed_x_;  // packed inputs, expert after expert
};

}  // namespace outrider
