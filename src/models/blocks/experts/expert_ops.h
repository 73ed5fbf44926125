// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/backend/host/layer_ops.h"
#include "models/blocks/experts/expert_routing.h"
#include "models/blocks/experts/expert_weights.h"
#include "models/weights/expert_stream.h"

namespace outrider {

// Runs mixtures of experts over the rows of a pass. The rows of an expert are gathered, so that a pass reads
// the weights of each expert once; then the outputs of each row are added, best choice first. The bits of a
// row do not depend on the experts that other rows choose, because products treat every row alike. Shards
// gather the inputs of the second product, and the sums of outputs, which each makes for its own features in
// the same order, so that no bit depends on their number.
class ExpertOps {
 public:
  // `ops` must outlive it.
  ExpertOps(const ExpertTraits& traits, const MlpTraits& mlp, int64_t hidden_size, LayerOps& ops)
      : traits_(traits), mlp_(mlp), hidden_size_(hidden_size), ops_(ops) {}

  // Makes room for passes of `rows` rows.
  void reserve(const ExpertWeights& layer, int64_t rows);
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
  void run(const ExpertWeights& layer, const Inputs& inputs, float* y, int64_t rows, const Source& source);
  // The experts that rows chose in the last run.
  int64_t chosen() const { return std::ssize(groups_.groups()); }

 private:
  // One expert's part of a product: rows that follow one another times one matrix.
  struct Product {
    LinearArgs args;
    bool packs = false;  // its inputs are not yet packed for an earlier part
  };

  void route(const ExpertWeights& layer, const float* x, int64_t rows);
  void gather(const float* x, int64_t rows);
  using Groups = std::span<const ExpertGroups::Group>;
  // Results of the groups' places.
  void compute(const ExpertWeights& layer, Groups groups);
  // As compute(), a group as soon as its expert has been read.
  void compute_read(const ExpertWeights& layer, const Source& source);
  void activate(const ExpertWeights& layer, Groups groups);
  // The inputs and outputs of a product, [places, k] and [places, n].
  struct PlaceRows {
    const float* x = nullptr;
    float* y = nullptr;
  };
  // y = the inputs of the groups' places times the matrices of their experts, plus biases.
  void multiply(const ExpertWeights& layer, Projection MlpWeights::*matrices, Groups groups, PlaceRows rows);
  OperationCost cost_of_products() const;
  void list_products(const ExpertWeights& layer, Projection MlpWeights::*matrices, Groups groups,
                     PlaceRows rows);
  void finish_rows(const ExpertWeights& layer, Projection MlpWeights::*matrices, Groups groups, float* y);
  // y[rows, outputs of a place] = the weighted sums of the results
  void combine(const ExpertWeights& layer, float* y, int64_t rows);

  const ExpertTraits traits_;
  const MlpTraits mlp_;
  const int64_t hidden_size_;
  LayerOps& ops_;
  ExpertGroups groups_;
  std::vector<ExpertChoice> choices_;  // [rows, used]
  std::vector<Product> products_;
  std::vector<int32_t> chosen_;              // experts of all groups
  std::vector<ExpertGroups::Group> loaded_;  // groups with readable experts

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
