// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "formats/kinds/latent_attention.h"
#include "formats/model_config.h"
#include "models/backend/host/layer_ops.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"

namespace outrider {

inline constexpr float kLatentEpsilon = 1e-6F;  // of the norms of latent vectors, whatever other norms have

// The projections of latent attention (LatentTraits). The matrices that make keys and values of the cached
// vector are applied to queries and to what was attended to instead, so that no key and no value of a head is
// ever made.
struct LatentWeights {
  Projection query_down;           // [query_rank, hidden_size], or empty
  std::vector<float> query_norm;   // [query_rank], or empty
  Projection queries;              // [heads * query_dim, query_rank or hidden_size]
  Projection entry;                // [rank + rope_dim, hidden_size]
  std::vector<float> entry_norm;   // [rank]
  std::vector<Projection> keys;    // by head, [rank, plain_dim]
  std::vector<Projection> values;  // by head, [value_dim, rank]
  Projection output;               // [hidden_size, heads * value_dim]

  void list(WeightList& list) const;
};

Status load_latent_attention(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                             LatentWeights& weights);

// The steps of latent attention on this machine, with the scratch that all layers share.
class LatentOps {
 public:
  // `ops` must outlive it.
  LatentOps(const LatentTraits& traits, int64_t heads, LayerOps& ops);

  void reserve(const LatentWeights& weights, int64_t rows);
  // qkv [rows, heads + 1, entry_size]: the queries of every head and the entry of the row, each with the
  // numbers that turn first.
  void make_queries(const LatentWeights& weights, const float* input, float* qkv, int64_t rows);
  // y [rows, heads * value_dim] from what every head attended to, [rows, heads, entry_size].
  void read_values(const LatentWeights& weights, const float* attended, float* y, int64_t rows);

 private:
  // A worker's memory for the product of one head.
  struct HeadScratch {
    Scratch x, y, packed_x;
  };
  static OperationCost cost_of(const std::vector<Projection>& heads, int64_t rows);
  void multiply(const Projection& of_head, HeadScratch& scratch, int64_t rows) const;
  void make_entries(const LatentWeights& weights, float* qkv, int64_t rows) const;

  const LatentTraits traits_;
  const int64_t heads_;
  LayerOps& ops_;
  Scratch query_vector_;  // [rows, query_rank]
  mutable Scratch queries_, entries_;
  std::vector<HeadScratch> scratch_;  // by worker
};

}  // namespace outrider
