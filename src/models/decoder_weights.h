// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/weight_loader.h"

namespace outrider {

struct DecoderLayer {
  std::vector<float> attention_norm;  // [input size], or empty
  Projection qkv;                     // queries, keys, values; where these are apart: queries alone
  Projection kv;                      // keys and values apart, or nothing
  std::vector<float> q_norm, k_norm;  // [head_dim], or empty
  Projection attention_output;
  std::vector<float> mlp_norm;  // [hidden_size]
  Projection gate_up;           // gate, up
  Projection down;

  int64_t bytes() const;
};

struct DecoderWeights {
  std::optional<MappedFile> packed_file;  // that matrices borrow their data from, if any
  std::optional<PackedMatrix> table;  // [vocab_size, hidden_size]; nullopt when lm_head is the embedding, too
  std::vector<DecoderLayer> layers;   // [layer_count]
  std::vector<float> final_norm;      // [hidden_size]
  Projection lm_head;
  std::vector<float> inverse_frequency;  // [head_dim / 2]

  // Its rows are read one at a time.
  const PackedMatrix& embedding() const { return table ? *table : lm_head.parts.front(); }
  int64_t parameter_count() const;
  int64_t bytes() const;
};

// Where a layer's tensors are, and what its config leaves open.
struct LayerPlace {
  std::string prefix;      // "model.layers.3."
  int64_t input_size = 0;  // of queries, keys and values
  bool has_input_norm = true;
  bool splits_queries = false;  // from keys and values, which come from other rows
};

// Plans one layer, which must stay where it is until the loader has packed all.
Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          DecoderLayer& layer);

// Errors: a missing or mis-shaped tensor, a type no matrix can be converted to, out of memory.
Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
