// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft_heads/head_layer.h"
#include "draft_heads/moa_config.h"
#include "draft_heads/vocabulary/head_vocabulary.h"
#include "models/model.h"

namespace outrider {

// The network of a Mixture of Attentions drafter. For every committed token it caches keys and values of
// self-attention (from the token's embedding) and of cross-attention (from the target's state after it).
// Drafted rows ask both; cross-attention is only of committed tokens.
class MoaNetwork {
 public:
  // Errors: as of read_moa_config() and of loading weights. The target must outlive the network.
  static Result<std::unique_ptr<MoaNetwork>> load(const HeadFile& head, Model& target,
                                                  const ModelOptions& options);

  const MoaConfig& config() const { return config_; }
  KvShape kv_shape() const;  // pages excepted
  int64_t weight_bytes() const {
    return self_attention_.bytes() + cross_attention_.bytes() + layer_self_attention_.bytes() +
           to_hidden_.bytes();
  }
  // Makes room for drafting passes of so many rows, and for contexts of max_context().
  void reserve(int64_t rows);
  // Tokens with states that are worked out together.
  static constexpr int64_t max_context() { return 64; }

  // The keys (rotated, as cached) and values of all layers attend to one another, and their mean is taken:
  // [slots, pooled_size()] for the tokens in these slots of the target's cache. Valid until the next call. At
  // most max_context() slots.
  FloatAddress pool_layers(std::span<const int32_t> slots, const KvCache& target_cache);
  int64_t pooled_size() const { return config_.layer_self_attention.hidden_size; }
  // The states that cross-attention reads, [tokens, hidden_size], from pooled layers [tokens, pooled_size()].
  // Valid until the next call. At most max_context() tokens.
  FloatAddress states_of(FloatAddress pooled, int64_t tokens);

  // Caches the committed tokens that are the rows of the batch; `states` [rows, hidden_size] are
  // what cross-attention reads of them; they are ignored where there is none.
  void add_context(const ForwardBatch& batch, FloatAddress states, KvCache& cache);

  // The states of drafted rows, [rows, hidden_size], valid until the next call: what the target's output head
  // reads, or its last `target_layers` layers.
  FloatAddress run(const ForwardBatch& batch, KvCache& cache);
  // Logits of normalised states [rows, hidden_size], see HeadVocabulary::logits().
  std::span<const float> logits(FloatAddress states, int64_t rows) {
    return vocabulary_.read_logits(states, rows);
  }
  // Whether it has rows of the target's output head, in place of the whole.
  bool has_own_output() const { return vocabulary_.has_own_output(); }

 private:
  MoaNetwork(MoaConfig config, Model& target, const ModelOptions& options);
  Status load_weights(const HeadFile& head, const ModelOptions& options);
  void embed(const ForwardBatch& batch);

  MoaConfig config_;
  Model* target_;
  LayerBackend& backend_;
  HeadVocabulary vocabulary_;
  HeadLayers layers_;
  std::optional<HeadLayers> target_layers_;  // of layer self-attention
  HeadLayer self_attention_, cross_attention_, layer_self_attention_;
  WeightMemory memory_;
  Projection to_hidden_;                  // Ekv2E
  std::unique_ptr<KvCache> layer_cache_;  // a page per token, an entry per layer of the target
  ForwardBatch layer_batch_;
  int64_t reserved_ = 0;            // rows
  BackendRows states_{backend_};    // [rows, hidden_size]
  BackendRows normed_{backend_};    // [rows, hidden_size]
  BackendRows by_layer_{backend_};  // [slots, layers, 2 * kv size of the target]
  BackendRows mean_{backend_};      // [slots, 2 * kv size of the target]
  BackendRows mixed_{backend_};     // [slots, hidden_size]
};

}  // namespace outrider
