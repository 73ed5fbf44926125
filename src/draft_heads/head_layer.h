// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "models/backend/entry_hiding.h"
#include "models/backend/layer_backend.h"
#include "models/blocks/attention/attention_weights.h"
#include "models/blocks/dense_mlp/mlp_weights.h"
#include "models/rotary_embedding.h"

namespace outrider {

// A layer of attention and a dense MLP.
struct HeadLayer : AttentionWeights, MlpWeights {
  Norm attention_norm;  // of the attention's input [input size]
  Norm mlp_norm;        // of the MLP's input [hidden_size]

  int64_t bytes() const;
};

// Plans the loading of one layer, which must not move before WeightLoader::pack_all() has returned.
Status load_decoder_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                          HeadLayer& layer);

// Sets the biases and the norms of queries and keys that the layer's tensors show.
void detect_layer_variant(const HeadFile& head, const std::string& prefix, ModelConfig& config);

// Appends what load_decoder_layer() reads, for check_head_tensors().
void append_layer_tensors(const ModelConfig& config, const LayerPlace& place,
                          std::vector<HeadTensor>& tensors);

// As the two functions above, for layers that follow one another.
void append_layer_tensors(const ModelConfig& config, std::span<const LayerPlace> places,
                          std::vector<HeadTensor>& tensors);
Status load_layers(WeightLoader& loader, const ModelConfig& config, std::span<const LayerPlace> places,
                   std::vector<HeadLayer>& layers);

// An RMS norm without weights yet.
inline Norm empty_norm(float epsilon) {
  Norm norm;
  norm.epsilon = epsilon;
  return norm;
}
// Adds 1 to all norms of the layer: some families store w for a scale of 1 + w.
void add_one(std::vector<float>& norm);
void add_one_to_norms(HeadLayer& layer);

// The steps of decoder layers over the rows of one pass; layers of one network share it and its scratch.
//   begin(); for each layer: store(normed input); [keep_wanted();] finish(states)
class HeadLayers {
 public:
  // `config` is the layers', which may differ in the size of their MLP. `backend` and `pool` must outlive
  // it.
  HeadLayers(const ModelConfig& config, LayerBackend& backend, ThreadPool* pool);

  // Makes room for passes of at most that many rows.
  void reserve(int64_t rows, std::span<const HeadLayer> layers);
  // As reserve(), for passes that hide entries; tree_rows of their rows are in trees.
  void reserve_hiding(int64_t rows, int64_t tree_rows, int64_t entries);

  // All rows of the batch take part. Both must live until the pass is done. Rows do not see entries of their
  // sequence before `first_entry`, but always their own.
  void begin(const ForwardBatch& batch, KvCache& cache, int32_t first_entry = 0);

  // Queries of every row, and its keys and values into cache layer `index`; input [rows, layer.qkv.k].
  void store(const HeadLayer& layer, int64_t index, FloatAddress input);
  // As above in two parts, for layers that split queries: first only keys and values, input [rows,
  // layer.kv.k]; then only queries, input [rows, layer.qkv.k].
  void store_context(const HeadLayer& layer, int64_t index, FloatAddress input);
  void query(const HeadLayer& layer, FloatAddress input);
  // From here on rows see the last `window` of the entries that they may see, 0: all of them. With
  // `is_causal` they see no entry of their tail after their position. Precondition: tails of the batch are
  // entries that follow one another.
  void see(int64_t window, bool is_causal);
  // From here on rows see only the first entries of their sequence, not the entries of their tree.
  void see_prefix_only();
  // From here on only rows with logits remain, in their order, also in `states` [rows, hidden].
  void keep_wanted(FloatAddress states);
  // states += output(attention), then states += MLP(mlp_norm(states)). The four steps below are the same one
  // by one; each gives the rows that the next one reads, [rows, hidden], which may be changed in between.
  void finish(const HeadLayer& layer, int64_t index, FloatAddress states);
  FloatAddress attend(const HeadLayer& layer, int64_t index);  // output(attention)
  FloatAddress add_attended(const HeadLayer& layer,
                            FloatAddress states);  // states += outputs, mlp_norm(states)
  FloatAddress run_mlp(const HeadLayer& layer);    // MLP(the row that add_attended() gave)
  void add_mlp(FloatAddress states);               // states += what run_mlp() gave
  // A whole layer, normalising its input if it has weights for that; `keeps_wanted`: the last one, nothing
  // else depends on rows without logits.
  void run(const HeadLayer& layer, int64_t index, FloatAddress states, bool keeps_wanted);

  int64_t rows() const { return static_cast<int64_t>(attention_rows_.size()); }  // being computed
  LayerBackend& backend() { return backend_; }
  KvShape kv_shape(int64_t layer_count) const;

 private:
  LayerBackend::RowPlaces places() {
    return {.rows = rows_,
            .slots = batch_->slots,
            .rotations = {rotations_.data(), rope_.rotated(), &rope_},
            .query_factors = {}};
  }

  LayerBackend::Attention attention_of(const AttentionShape& shape, const HeadLayer& layer, int64_t index,
                                       FloatAddress qkv) const;

  LayerBackend& backend_;
  ThreadPool* pool_;
  AttentionShape shape_;
  int64_t hidden_size_;
  RotaryEmbedding rope_;
  const ForwardBatch* batch_ = nullptr;
  KvCache* cache_ = nullptr;
  std::vector<int32_t> rows_;  // of the batch
  std::vector<AttentionRow> attention_rows_;
  EntryHiding hiding_;
  std::vector<float> rotations_;    // see RowRotations
  BackendRows normed_{backend_};    // [rows, hidden_size]
  BackendRows qkv_{backend_};       // [rows, qkv_size]
  BackendRows attended_{backend_};  // [rows, q_size]
  BackendRows delta_{backend_};     // [rows, hidden_size]
  BackendRows gate_up_{backend_};   // [rows, gate_up.n]
  BackendRows gated_{backend_};     // [rows, down.k]
};

}  // namespace outrider
