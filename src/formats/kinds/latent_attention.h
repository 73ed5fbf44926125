// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/json_object.h"
#include "formats/layer_kind.h"
#include "formats/stored_layout.h"

namespace outrider {

extern const LayerKind kLatentAttentionKind;

// Attention with keys and values that are projections of one vector of a token, the only thing that is cached
// of it (DeepSeek V2). A query meets this vector after another projection, and so do the values that it
// reads.
struct LatentTraits {
  int64_t rank = 0;        // numbers of the vector
  int64_t query_rank = 0;  // of a vector that queries are made of; 0: they are made of the layer's input
  int64_t plain_dim = 0;   // numbers of a query that do not turn
  int64_t rope_dim = 0;    // numbers of a query that turn, in neighbouring pairs
  int64_t value_dim = 0;   // of a head

  int64_t query_dim() const { return plain_dim + rope_dim; }
  int64_t entry_size() const { return rope_dim + rank; }
};

Status read_deepseek_v2_traits(const JsonObject& root, ModelConfig* config);
Status read_deepseek_v3_traits(const JsonObject& root, ModelConfig* config);  // GLM-4.7-Flash, too

// The keys of one head, transposed, and the values of one head, from a matrix of both.
Result<TensorView> cut_latent_keys(const FusedTensor& fused, const ModelConfig& config,
                                   ModelStorage* storage);
Result<TensorView> cut_latent_values(const FusedTensor& fused, const ModelConfig& config,
                                     ModelStorage* storage);

}  // namespace outrider
