// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "models/backend/layer_backend.h"
#include "models/decoder_weights.h"
#include "models/model.h"
#include "models/recurrent/state_plan.h"
#include "models/rotary_embedding.h"

namespace outrider {

// The network that the families share: layers of attention and MLP on a residual stream. The traits of its
// ModelConfig say which norms, functions and factors they have. It decides what is computed, and a
// LayerBackend computes it.
class Decoder final : public Model {
 public:
  Decoder(ModelConfig config, const ModelOptions& options, std::unique_ptr<LayerBackend> backend);

  const ModelConfig& config() const override { return config_; }
  KvShape kv_shape() const override { return kv_shape_; }
  int64_t parameter_count() const override { return weights_.parameter_count(); }
  int64_t weight_bytes() const override { return weights_.bytes(); }
  bool maps_weights() const override { return weights_.memory.file.has_value(); }
  int64_t streamed_bytes() const override { return weights_.streamed_bytes(config_.experts.used); }
  int64_t woken_experts() const override;
  int64_t pass_bytes() const override;
  Status keep_layers(int64_t bytes) override {
    return weights_.stream ? weights_.stream->keep(bytes) : Status();
  }
  std::optional<LayerStreaming> streaming() const override;
  Status reserve(int64_t rows, int64_t logits_rows) override;
  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override {
    return run(batch, cache, whole_).logits;
  }
  SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) override;
  void tap(FeatureTaps taps) override;
  int64_t feature_size() const override;
  std::span<const float> hidden_states() override;
  std::span<const float> features() override;
  void measure_into(PassProfile* profile) override { backend_->measure_into(profile); }
  void embed_tokens(std::span<const TokenId> tokens, float* out) const override;
  std::span<const float> output_head(const float* states, int64_t rows) override;
  void normalize_output(const float* states, float* out, int64_t rows) const override;

 private:
  KvShape make_kv_shape() const;
  StateShape make_state_shape() const;
  void grow(int64_t rows, int64_t logits_rows);
  void grow_layer(const DecoderLayer& layer, int64_t rows);
  SubsetOutput run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers);
  // Makes `rows_` all rows of the batch, or those that do not resume.
  void list_rows(const ForwardBatch& batch, bool with_resumed);
  void embed(const ForwardBatch& batch);
  // y[tokens, hidden_size] = rows of the embedding as they enter the first layer, without learned positions
  void embed(std::span<const TokenId> tokens, FloatAddress y) const;
  // Takes the residual stream of the rows from the stage before.
  void enter(const ForwardBatch& batch);
  // Prepares all that a row's position decides.
  void place_rows(const ForwardBatch& batch);
  // Prepares the layers with states for the rows being computed.
  void plan_states(const ForwardBatch& batch, KvCache& cache);
  // Adds the resumed rows to those being computed.
  void resume(const ForwardBatch& batch);
  RowRotations rotations_of(int64_t layer);
  std::span<const float> query_factors_of(int64_t layer) const;
  void run_attention(const ForwardBatch& batch, int64_t index, bool is_last, KvCache& cache);
  // Stands in the place of attention where a layer has none.
  void run_recurrence(int64_t index, bool is_last, KvCache& cache);
  // qkv_ = queries, keys and values of a layer with attention.
  void project_qkv(const DecoderLayer& layer, FloatAddress input);
  // `joins`: the layer is parallel, and its attention has run.
  void run_mlp(int64_t index, bool joins);
  FloatAddress mlp_input(const DecoderLayer& layer, bool joins);
  // output[rows, hidden_size] = the layer's dense MLP, its experts, or both added.
  void compute_mlp(int64_t index, FloatAddress input, FloatAddress output);
  void compute_dense_mlp(const DecoderLayer& layer, FloatAddress input, FloatAddress output);
  // The inputs of all layers for every row of the batch.
  void compute_layer_inputs(const ForwardBatch& batch);
  void add_layer_input(const LayerInput& input, int64_t index);
  void finish_layer(const DecoderLayer& layer, int64_t index);
  void add_positions(const ForwardBatch& batch);
  // logits_ = output head of normalized states [rows, hidden_size], scaled and capped
  void compute_logits(FloatAddress states, int64_t rows);
  // Normalizes and scales the output of attention or MLP, [rows, hidden_size].
  void finish_output(const Norm& norm, FloatAddress output);
  // delta_ is to be added to the residual stream.
  void submit_delta(const Norm& output_norm);
  // Lists the rows whose logits or states are wanted.
  void list_wanted_rows(const ForwardBatch& batch);
  // Rows that narrowing moves along with those of the residual stream.
  struct MovedRows {
    FloatAddress data;
    int64_t size = 0;
  };
  // Narrows the rows being computed to those wanted, in their order.
  void keep_wanted_rows(std::initializer_list<MovedRows> moved);
  void keep_wanted_outputs();
  // Copies the wanted states out of the outputs of the wanted rows; returns the outputs of rows with logits.
  FloatAddress take_hidden_states(const ForwardBatch& batch, FloatAddress outputs);
  // The places of wanted rows among wanted_, valid until the next call.
  std::span<const int32_t> places_of(std::span<const int32_t> rows);
  // to[i] = from[rows[i]], [rows, hidden_size]
  void copy_states(FloatAddress from, std::span<const int32_t> rows, FloatAddress to);
  // hidden += pending delta; returns norm(hidden), or `hidden` itself where the norm is empty. `hidden` is
  // then the input of layer `tapped_layer`, which is kept where it is a wanted feature; -1: it is no layer's
  // input.
  FloatAddress add_and_normalize(const Norm& norm, int64_t tapped_layer = -1);
  void copy_feature(FloatAddress states, int64_t index);
  // True where features are wanted that only the last layer computes.
  bool taps_end() const {
    return captures_ &&
           (taps_.final_norm || (!taps_.layers.empty() && taps_.layers.back() == config_.layer_count));
  }
  // The number of rows being computed.
  int64_t row_count() const { return static_cast<int64_t>(attention_rows_.size()); }

  ModelConfig config_;
  ModelPart part_;
  Range own_layers_;  // [0, layer_count) where there is one rank
  std::unique_ptr<LayerBackend> backend_;
  const DecoderWeights& weights_;          // the backend's
  std::vector<AttentionShape> attention_;  // [layer_count]
  // [layer_count]: where the cache has the layer's keys and values, or its state.
  std::vector<int64_t> cache_layers_;
  std::vector<RotaryEmbedding> ropes_;
  KvShape kv_shape_;
  LayerSubset whole_;
  FeatureTaps taps_;
  bool captures_ = false;       // this pass keeps features
  std::vector<int64_t> woken_;  // [layer_count]: experts that the last pass read
  int64_t feature_rows_ = 0;    // rows of features_ that the last pass wrote

  // Scratch of one pass, one row per row being computed.
  BackendRows hidden_{*backend_};  // [rows, hidden_size]: the residual stream
  BackendRows normed_{*backend_};  // [rows, hidden_size]
  BackendRows delta_{*backend_};   // [rows, hidden_size]: what attention or MLP adds to the residual stream
  BackendRows branch_{*backend_};  // [rows, hidden_size]: the MLP of a parallel layer, before it joins delta_
  mutable BackendRows embedded_{*backend_};  // [rows, token_size], where that is not hidden_size
  mutable BackendRows shared_{*backend_};    // [rows, hidden_size]: of drafters that use a part of the target
  bool is_delta_pending_ = false;            // delta_ is not yet added to hidden_
  BackendRows qkv_{*backend_};               // [rows, qkv_size]
  BackendRows attended_{*backend_};          // [rows, q_size]
  BackendRows values_{*backend_};            // [rows, heads * value_dim] of latent attention
  BackendRows output_gates_{*backend_};      // [rows, q_size], where attention is gated
  BackendRows gate_up_{*backend_};           // [rows, 2 * ffn_size]
  BackendRows gated_{*backend_};             // [rows, ffn_size]
  BackendRows dense_{*backend_};             // [rows, hidden_size]: the dense MLP beside experts
  BackendRows dense_gates_{*backend_};       // [rows, 1]
  BackendRows router_inputs_{*backend_};     // [rows, hidden_size], where the router has a norm of its own
  BackendRows features_{*backend_};          // [batch rows, feature_size()]
  BackendRows logits_{*backend_};            // [wanted rows, vocab_size]
  BackendRows projected_inputs_{*backend_};  // [batch rows, layer_count, size]
  BackendRows layer_inputs_{*backend_};      // [batch rows, layer_count, size], where layers have inputs
  BackendRows hidden_states_{*backend_};     // [batch.hidden_state_rows, hidden_size]
  int64_t hidden_state_count_ = 0;           // rows of hidden_states_ that the last pass wrote
  std::vector<int32_t> wanted_;              // rows of the batch whose logits or states are wanted, ascending
  std::vector<int32_t> rows_;                // rows of the batch being computed
  std::vector<TokenId> tokens_;              // of these rows, where they enter the first layer
  std::vector<int32_t> positions_;           // of these rows in the table of learned positions
  std::vector<int32_t> places_;              // scratch of resume() and places_of()
  std::vector<AttentionRow> attention_rows_;
  std::vector<Scratch> rotations_;    // for each of ropes_, see RowRotations
  std::vector<float> query_factors_;  // [batch rows], or empty: queries do not depend on temperatures
  StatePlan states_;
};

}  // namespace outrider
