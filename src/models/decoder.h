// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/backend/layer_backend.h"
#include "models/blocks/block_pass.h"
#include "models/decoder_weights.h"
#include "models/model.h"
#include "models/residual_stream.h"

namespace outrider {

// The network that the families share: layers of two blocks on a residual stream. The traits of its
// ModelConfig say which blocks, norms and factors they have. It decides what is computed, and a LayerBackend
// computes it.
class Decoder final : public Model {
 public:
  Decoder(ModelConfig config, const ModelOptions& options, std::unique_ptr<LayerBackend> backend);

  const ModelConfig& config() const override { return config_; }
  KvShape kv_shape() const override { return kv_shape_; }
  int64_t parameter_count() const override { return weights_.parameter_count(); }
  int64_t weight_bytes() const override { return weights_.bytes(); }
  bool maps_weights() const override { return weights_.memory.file.has_value(); }
  int64_t streamed_bytes() const override { return weights_.row_bytes(); }
  int64_t active_experts() const override;
  int64_t pass_bytes() const override;
  Status keep_layers(int64_t bytes) override {
    return weights_.stream ? weights_.stream->keep(bytes) : Status();
  }
  std::optional<LayerStreaming> streaming() const override;
  Status reserve(int64_t rows, int64_t logits_rows) override;
  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override {
    run(batch, cache, whole_);
    return logits();
  }
  // Waits, so that the time of a call is the time of the pass.
  void run_pass(const ForwardBatch& batch, KvCache& cache) override {
    run(batch, cache, whole_);
    backend_->wait();
  }
  std::span<const float> logits_at(int64_t row) override;
  FloatAddress logit_rows() override { return logits_.data(); }
  FloatAddress feature_rows() override { return features_.data(); }
  // Runs one layer over all rows of the batch, which enter it with `states`, [rows, hidden_size]. No row sees
  // an entry before `first_entry`, except itself. hidden_rows() then has the outputs of
  // batch.hidden_state_rows.
  void forward_layer(const ForwardBatch& batch, KvCache& cache, int64_t index, int32_t first_entry,
                     FloatAddress states);
  // Makes room for such passes, see EntryHiding::reserve().
  void reserve_hiding(int64_t rows, int64_t tree_rows, int64_t entries) {
    pass_.hiding().reserve(rows, tree_rows, entries);
  }
  SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) override;
  void tap(FeatureTaps taps) override;
  int64_t feature_size() const override;
  AdapterSet* adapters() override { return part_.is_whole() ? &adapters_ : nullptr; }
  LayerBackend& backend() override { return *backend_; }
  std::optional<DeviceCounts> device_counts() const override { return backend_->device_counts(); }
  std::optional<double> device_copy_ms(int64_t bytes) override { return backend_->device_copy_ms(bytes); }
  // Draft heads have caches of other shapes.
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override {
    return is_own(shape) ? backend_->make_own_storage(shape) : backend_->make_storage(shape);
  }
  std::span<const float> hidden_states() override;
  FloatAddress hidden_rows() override { return hidden_states_.data(); }
  std::span<const float> features() override;
  void measure_into(PassProfile* profile) override { backend_->measure_into(profile); }
  void embed_tokens(std::span<const TokenId> tokens, FloatAddress out) override;
  FloatAddress output_head(FloatAddress states, int64_t rows) override;

 private:
  // Takes the place of each layer in the cache, and the shape of the cache.
  void place_in_cache();
  // Whether a cache has the layers that this network writes.
  bool is_own(const KvShape& shape) const;
  void grow(int64_t rows, int64_t logits_rows);
  void run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers);
  bool keeps_states() const { return kv_shape_.states.layer_count > 0; }
  bool can_repeat(const ForwardBatch& batch, const KvCache& cache) const;
  // Lets the backend compute a pass that it repeats.
  void repeat(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers);
  void note_states(KvCache& cache, const LayerSubset& layers) const;
  // Calls the operations of a pass, one after the other.
  void compute(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers);
  void begin(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers);
  void run_layers(const ForwardBatch& batch, const LayerSubset& layers);
  void finish(const ForwardBatch& batch);
  void embed(const ForwardBatch& batch);
  // Takes the residual stream of the rows from the stage before.
  void enter();
  // Adds the resumed rows to the rows being computed.
  void resume(const ForwardBatch& batch);
  void run_mixer(int64_t index, bool is_last);
  // `joins`: the layer is parallel, and its mixer has run.
  void run_mlp(int64_t index, bool joins);
  FloatAddress mlp_input(const LayerBlocks& layer, bool joins);
  // The inputs of all layers for every row of the batch.
  void compute_layer_inputs(const ForwardBatch& batch);
  void add_layer_input(const LayerInput& input, int64_t index);
  void finish_layer(const LayerBlocks& layer, int64_t index);
  void add_positions(const ForwardBatch& batch);
  // logits_ = output head of normalized states [rows, hidden_size], scaled and capped
  void compute_logits(FloatAddress states, int64_t rows);
  void keep_wanted_outputs();
  // Copies the wanted states out of the outputs of the wanted rows; returns the outputs of rows with logits.
  std::span<const float> logits();
  FloatAddress take_hidden_states(const ForwardBatch& batch, FloatAddress outputs);
  // The places of wanted rows among all wanted ones, valid until the next call.
  std::span<const int32_t> places_of(std::span<const int32_t> rows);
  // to[i] = from[rows[i]], [rows, hidden_size]
  void copy_states(FloatAddress from, std::span<const int32_t> rows, FloatAddress to);
  // Adds what waits to the stream, which is the input of `layer`, and returns its norm. Keeps the stream
  // where it is a wanted feature.
  FloatAddress normalize_input(const Norm& norm, int64_t layer);
  void copy_feature(FloatAddress states, int64_t index);
  // True where features are wanted that only the last layer computes.
  bool taps_end() const {
    return captures_ &&
           (taps_.final_norm || (!taps_.layers.empty() && taps_.layers.back() == config_.layer_count));
  }
  const LayerBlocks& layer_at(int64_t index) const { return weights_.layers[static_cast<size_t>(index)]; }

  ModelConfig config_;
  ModelPart part_;
  Range own_layers_;  // [0, layer_count) where there is one rank
  std::unique_ptr<LayerBackend> backend_;
  const DecoderWeights& weights_;       // the backend's
  std::vector<int64_t> cache_layers_;   // [layer_count], see BlockRows
  std::vector<int64_t> scratch_sizes_;  // see Block::scratch(), for all blocks
  KvShape kv_shape_;
  AdapterSet adapters_;
  LayerSubset whole_;
  FeatureTaps taps_;
  bool captures_ = false;                // this pass keeps features
  std::vector<int64_t> active_experts_;  // [layer_count]: experts that the last pass read

  // One pass. Rows are the rows being computed where nothing else is said.
  BlockPass pass_;
  ResidualStream stream_;
  BackendRows embedded_;            // [rows, token_size], where that is not hidden_size
  BackendRows features_;            // [batch rows, feature_size()]
  BackendRows logits_;              // [wanted rows, vocab_size]
  BackendRows projected_inputs_;    // [batch rows, layer_count, size]
  BackendRows layer_inputs_;        // [batch rows, layer_count, size], where layers have inputs
  BackendRows hidden_states_;       // [batch.hidden_state_rows, hidden_size]
  int64_t feature_rows_ = 0;        // rows of features_ that the last pass wrote
  int64_t hidden_state_count_ = 0;  // rows of hidden_states_ that the last pass wrote
  int64_t logit_count_ = 0;         // rows of logits_ that the last pass wrote
  std::vector<std::span<const float>> read_logits_;  // [logit_count_]; empty: the row was not read
  std::vector<TokenId> tokens_;                      // of the rows, where they enter the first layer
  std::vector<int32_t> positions_;                   // of the rows in the table of learned positions
  std::vector<int32_t> places_;                      // scratch of resume() and places_of()
};

}  // namespace outrider
