// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "models/blocks/block.h"
#include "models/model.h"
#include "models/weights/layer_place.h"
#include "models/weights/weight_list.h"
#include "models/weights/weight_stream.h"

namespace outrider {

// The end of a layer with its own input: x + norm(projection(act(gate(x)) * input)).
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

// Two blocks on the residual stream, with norms of their inputs and outputs.
struct LayerBlocks {
  std::unique_ptr<Block> mixer, mlp;
  Norm mixer_norm;         // of the mixer's input
  Norm mixer_output_norm;  // [hidden_size]
  Norm mlp_norm;           // of the MLP's input [hidden_size]
  Norm mlp_output_norm;    // [hidden_size]
  LayerInput input;        // empty projections: the layer has none
  float scalar = 1;        // of the residual stream after the layer

  void list(WeightList& weights) const;
};

struct DecoderWeights {
  WeightMemory memory;
  std::optional<PackedMatrix> table;  // [vocab_size, token_size]; nullopt when lm_head is the embedding, too
  std::vector<LayerBlocks> layers;    // [layer_count]; the weights of some may not be loaded
  std::unique_ptr<WeightStream> stream;   // of the layers' matrices where they are not all in memory, or null
  std::optional<PackedMatrix> positions;  // learned, [offset + count, hidden_size]
  Projection input_projection;            // of rows of the table to the residual stream, or empty
  Projection output_projection;           // of normalized states to the output head, or empty
  Norm final_norm;                        // [hidden_size], or empty
  Projection lm_head;
  std::optional<LayerInputTable> layer_inputs;

  // The embedding table [vocab_size, token_size]; its rows are read one at a time.
  const PackedMatrix& embedding() const { return table ? *table : lm_head.parts.front(); }
  WeightList list() const;                          // all weights but tables
  std::vector<const PackedMatrix*> tables() const;  // weights with rows that are read one at a time
  int64_t parameter_count() const;
  int64_t bytes() const;
  // The bytes that every pass reads: single rows of the tables, and no parts of blocks that rows choose from.
  int64_t shared_bytes() const;
  // The bytes that a pass over one row reads.
  int64_t row_bytes() const;
};

// The layers of a network; their weights are not yet loaded.
std::vector<LayerBlocks> make_layers(const ModelConfig& config, Shard shard = {});

// The bytes that a token takes in a cache of that type, in all layers and in one.
int64_t cache_bytes_per_token(const ModelConfig& config, DType type);
int64_t cache_bytes_per_token(const ModelConfig& config, DType type, int64_t layer);

// Plans the loading of one layer, which must not move before WeightLoader::pack_all() has returned.
Status load_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                  LayerBlocks& layer);

// Loads all weights of a model. Errors: a missing or mis-shaped tensor, a type that no matrix can be
// converted to, out of memory.
Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options);

// Loads the weights of a network; a backend may call it more than once.
using LoadWeights = std::function<Result<DecoderWeights>()>;

}  // namespace outrider
