// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "models/decoder_weights.h"
#include "models/layer_ops.h"
#include "models/model.h"

namespace outrider {

// What the config of a family may ask of the shared decoder. The rest of ModelConfig is free for every
// family.
struct DecoderTraits {
  enum class Use : uint8_t { kNever, kOptional, kAlways };
  Use qkv_bias = Use::kNever;
  Use output_bias = Use::kNever;
  Use mlp_bias = Use::kNever;
  Use qk_norm = Use::kNever;
};

// Loads a network of pre-norm blocks: RMSNorm, grouped-query attention with RoPE, RMSNorm, SwiGLU. Errors: a
// config that the traits do not allow; those of load_decoder_weights().
Result<std::unique_ptr<Model>> load_decoder(const ModelFile& file, const ModelOptions& options,
                                            const DecoderTraits& traits);

// The network that the families share.
class Decoder final : public Model {
 public:
  Decoder(ModelConfig config, const ModelOptions& options, DecoderWeights weights);

  const ModelConfig& config() const override { return config_; }
  KvShape kv_shape() const override;
  int64_t parameter_count() const override { return weights_.parameter_count(); }
  int64_t weight_bytes() const override { return weights_.bytes(); }
  bool maps_weights() const override { return weights_.packed_file.has_value(); }
  int64_t streamed_bytes() const override {
    return weights_.bytes() - (weights_.table ? static_cast<int64_t>(weights_.table->data.size()) : 0);
  }
  Status reserve(int64_t rows, int64_t logits_rows) override;
  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override {
    return run(batch, cache, whole_).logits;
  }
  SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) override;
  void tap(FeatureTaps taps) override;
  int64_t feature_size() const override;
  std::span<const float> features() override;
  void embed_tokens(std::span<const TokenId> tokens, float* out) const override;
  std::span<const float> output_head(const float* states, int64_t rows) override;
  void normalize_output(const float* states, float* out, int64_t rows) const override;

 private:
  void grow(int64_t rows, int64_t logits_rows);
  SubsetOutput run(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers);
  // Makes `rows_` all rows of the batch, or those that do not resume.
  void list_rows(const ForwardBatch& batch, bool with_resumed);
  void embed(const ForwardBatch& batch);
  // From here on the resumed rows are computed with the others.
  void resume(const ForwardBatch& batch);
  void run_attention(const ForwardBatch& batch, int64_t index, bool is_last, KvCache& cache);
  void run_mlp(const DecoderLayer& layer);
  // From here on the batch is its rows with logits, in their order.
  void keep_wanted_rows(const ForwardBatch& batch);
  void keep_wanted_outputs(const ForwardBatch& batch);
  // hidden += pending delta; normed = RMSNorm(hidden). `tapped_layer`: whose input hidden is then; -1:
  // none's.
  void add_and_normalize(const std::vector<float>& norm, int64_t tapped_layer = -1);
  void copy_feature(const float* states, int64_t index);
  // Whether features are wanted that only the last layer makes.
  bool taps_end() const {
    return captures_ &&
           (taps_.final_norm || (!taps_.layers.empty() && taps_.layers.back() == config_.layer_count));
  }
  // Rows being computed.
  int64_t row_count() const { return static_cast<int64_t>(attention_rows_.size()); }

  ModelConfig config_;
  LayerOps ops_;
  DecoderWeights weights_;
  AttentionShape attention_;
  LayerSubset whole_;
  FeatureTaps taps_;
  bool captures_ = false;  // this pass keeps features
  int64_t feature_rows_ = 0;

  // Scratch of one pass, one row per row being computed.
  Scratch hidden_;                 // [rows, hidden_size]: the residual stream
  Scratch normed_;                 // [rows, hidden_size]
  Scratch delta_;                  // [rows, hidden_size]: what a block adds to the residual stream
  bool is_delta_pending_ = false;  // not yet added
  Scratch rotations_;              // [batch rows, head_dim], see fill_rotations
  Scratch qkv_;                    // [rows, qkv_size]
  Scratch attended_;               // [rows, q_size]
  Scratch gate_up_;                // [rows, 2 * ffn_size]
  Scratch gated_;                  // [rows, ffn_size]
  Scratch features_;               // [batch rows, feature_size()]
  Scratch logits_;                 // [wanted rows, vocab_size]
  std::vector<int32_t> rows_;      // of the batch, being computed; until keep_wanted_rows()
  std::vector<AttentionRow> attention_rows_;
};

}  // namespace outrider
