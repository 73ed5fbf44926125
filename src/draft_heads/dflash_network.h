// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft_heads/head_layer.h"
#include "models/model.h"

namespace outrider {

struct DFlashConfig {
  ModelConfig layers;        // the drafter's own layers
  std::vector<int64_t> ids;  // layers of the target whose outputs it learns from, rising
  int64_t block_size = 0;    // the pending token and the places drafted at once
  TokenId mask = 0;          // token of a place to be drafted
};

// Errors: keys that are missing, not supported or contradict the target; the first tensor that is missing,
// has another shape, or does not belong there.
Result<DFlashConfig> read_dflash_config(const HeadFile& head, const ModelConfig& target);

// The block drafter of arXiv 2602.06036. For every committed token it caches keys and values that depend on
// the token's features alone; the rows of a block see all of these and one another.
class DFlashNetwork {
 public:
  // Errors: those of read_dflash_config() and of loading weights. The target must outlive the network.
  static Result<std::unique_ptr<DFlashNetwork>> load(const HeadFile& head, const Model& target,
                                                     const ModelOptions& options);

  const DFlashConfig& config() const { return config_; }
  FeatureTaps taps() const;
  KvShape kv_shape() const { return layers_.kv_shape(config_.layers.layer_count); }  // pages excepted
  int64_t weight_bytes() const;
  // Makes room for passes of so many rows.
  void reserve(int64_t rows);

  // Appends a block after the committed entries; the transaction has staged block_size entries.
  void append_block(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& staged,
                    TokenId pending) const;

  // Caches the committed tokens that are the rows of the batch; features [rows, ids.size() * hidden_size].
  void add_context(const ForwardBatch& batch, const float* features, KvCache& cache);

  // The states of the rows of blocks as the target's output head reads them, [rows, hidden_size], valid until
  // the next call: place i of a block proposes the token at its own position.
  std::span<const float> run(const ForwardBatch& batch, KvCache& cache);

 private:
  DFlashNetwork(DFlashConfig config, const Model& target, const ModelOptions& options);
  Status load_weights(const HeadFile& head, const ModelOptions& options);

  DFlashConfig config_;
  const Model* target_;
  HeadLayers layers_;
  WeightMemory memory_;
  Projection fuse_;  // fc
  std::vector<float> context_norm_, output_norm_;
  std::vector<DecoderLayer> weights_;  // by layer
  Scratch states_;                     // [rows, hidden_size]
  Scratch normed_;                     // [rows, hidden_size]
};

}  // namespace outrider
