// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/layer_ops.h"
#include "models/weight_loader.h"

namespace outrider {

struct DecoderLayer {
  Norm attention_norm;                // of the attention's input [input size]
  Projection qkv;                     // queries, keys, values; queries alone where LayerPlace splits them
  Projection kv;                      // keys and values where they are split from the queries, else empty
  std::vector<float> q_norm, k_norm;  // [head_dim] or [heads * head_dim]; or empty
  Projection attention_output;
  Norm attention_output_norm;  // [hidden_size]
  Norm mlp_norm;               // of the MLP's input [hidden_size]
  Projection gate_up;          // gate first, where there is one
  Projection down;
  Norm mlp_output_norm;  // [hidden_size]

  int64_t parameter_count() const;
  int64_t bytes() const;
};

struct DecoderWeights {
  std::optional<MappedFile> packed_file;  // the mapped file that matrices borrow their data from, if any
  std::optional<PackedMatrix> table;  // [vocab_size, hidden_size]; nullopt when lm_head is the embedding, too
  std::vector<DecoderLayer> layers;   // [layer_count]
  Norm final_norm;                    // [hidden_size]
  Projection lm_head;
  std::vector<float> inverse_frequency;  // [head_dim / 2]

  // The embedding table [vocab_size, hidden_size], whose rows are read one at a time.
  const PackedMatrix& embedding() const { return table ? *table : lm_head.parts.front(); }
  int64_t parameter_count() const;
  int64_t bytes() const;
};

// The place of a layer's tensors, and what its configuration leaves open.
struct LayerPlace {
  std::string prefix;      // "model.layers.3."
  int64_t input_size = 0;  // numbers per input row of queries, keys and values
  bool has_input_norm = true;
  bool splits_queries = false;  // from keys and values, which come from other rows
};

// Plans the loading of one layer. `layer` must not move before WeightLoader::pack_all() has returned.
Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          DecoderLayer& layer);

// Loads all weights of a model. Errors: a missing or mis-shaped tensor, a type that no matrix can be
// converted to, out of memory.
Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
