// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/expert_ops.h"
#include "models/latent_attention.h"
#include "models/layer_ops.h"
#include "models/recurrent/delta_net.h"
#include "models/recurrent/short_convolution.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_loader.h"
#include "models/weights/weight_stream.h"

namespace outrider {

// The end of a layer with an input of its own: x + norm(projection(act(gate(x)) * input)).
struct LayerInput {
  Projection gate;        // [size, hidden_size]
  Projection projection;  // [hidden_size, size]
  Norm norm;              // [hidden_size]
};

// The inputs of all layers for a token: norm(projection(embedding)) and a row of a table, added.
struct LayerInputTable {
  PackedMatrix table;     // [vocabulary, layer_count * size]
  Projection projection;  // [layer_count * size, hidden_size]
  Norm norm;              // [size]
};

struct DecoderLayer {
  Norm attention_norm;                // of the attention's input [input size]
  Projection qkv;                     // queries, keys, values; queries alone where LayerPlace splits them
  Projection kv;                      // keys and values where they are split from the queries, else empty
  std::vector<float> q_norm, k_norm;  // [head_dim] or [heads * head_dim]; or empty
  std::vector<float> v_norm;          // [head_dim] ones, or empty
  std::vector<float> sinks;           // [head_count], see AttentionArgs, or empty
  Projection attention_output;
  Projection output_gate;        // of attention, or empty
  LatentAttention latent;        // in the place of qkv, or empty
  ShortConvolution convolution;  // in the place of attention, or empty
  DeltaNet delta;                // likewise
  Norm attention_output_norm;    // [hidden_size]
  Norm mlp_norm;                 // of the MLP's input [hidden_size]
  Projection gate_up;            // of the dense MLP, gate first, where there is one; or empty: it has none
  Projection down;
  ExpertLayer experts;   // empty where the layer has none
  Norm mlp_output_norm;  // [hidden_size]
  LayerInput input;      // empty projections: the layer has none
  float scalar = 1;      // of the residual stream after the layer

  std::array<const Projection*, 12> projections() const {
    return {
        &qkv,         &kv,           &attention_output, &output_gate, &convolution.input, &convolution.output,
        &delta.input, &delta.output, &gate_up,          &down,        &input.gate,        &input.projection};
  }
  int64_t parameter_count() const;
  int64_t bytes() const;
};

struct DecoderWeights {
  WeightMemory memory;
  std::optional<PackedMatrix> table;  // [vocab_size, token_size]; nullopt when lm_head is the embedding, too
  std::vector<DecoderLayer> layers;   // [layer_count], empty ones where this rank or program lacks a layer
  std::unique_ptr<WeightStream> stream;   // of the layers' matrices where they are not all in memory, or null
  std::optional<PackedMatrix> positions;  // learned, [offset + count, hidden_size]
  Projection input_projection;            // of rows of the table to the residual stream, or empty
  Projection output_projection;           // of normalized states to the output head, or empty
  Norm final_norm;                        // [hidden_size], or empty
  Projection lm_head;
  std::optional<LayerInputTable> layer_inputs;

  // The embedding table [vocab_size, token_size], whose rows are read one at a time.
  const PackedMatrix& embedding() const { return table ? *table : lm_head.parts.front(); }
  int64_t parameter_count() const;
  int64_t bytes() const;
  // The bytes that a pass over one row reads: single rows of the tables and `used` experts of each layer.
  int64_t streamed_bytes(int64_t used) const;
};

// Plans the loading of one layer. `layer` must not move before WeightLoader::pack_all() has returned.
Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          DecoderLayer& layer);

// Loads all weights of a model. Errors: a missing or mis-shaped tensor, a type that no matrix can be
// converted to, out of memory.
Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options);

}  // namespace outrider
