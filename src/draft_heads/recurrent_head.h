// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "draft_heads/head_layer.h"
#include "draft_heads/vocabulary/head_vocabulary.h"
#include "models/model.h"
#include "outrider/drafter.h"

namespace outrider {

// A network that drafts token by token: the state after a token (of the target, or its own) and the next
// token give a state and the logits of the token after that. Entry e of its cache belongs to token e's state
// and token e + 1, at position e.
class RecurrentHead {
 public:
  virtual ~RecurrentHead() = default;

  const FeatureTaps& taps() const { return taps_; }
  int64_t feature_size() const { return taps_.count() * target_->config().hidden_size; }
  virtual KvShape kv_shape() const { return layers_.kv_shape(cache_layers_); }
  int64_t weight_bytes() const { return weight_bytes_; }
  virtual int64_t state_size() const { return hidden_size_; }
  // Greatest number of levels that it can draft.
  virtual int max_draft_len() const { return 64; }
  // The place of a token that is to be drafted, for a head that predicts all levels in one pass.
  struct MaskedPlace {
    std::optional<TokenId> token = {};  // nullopt: each level is a pass
    std::vector<float> features = {};   // [feature_size()], in place of the target's
  };
  const MaskedPlace& masked_place() const { return masked_place_; }
  // Whether rows of committed tokens also need the state of the entry before the first.
  virtual bool carries_state() const { return false; }

  // A pass that a device records has this in place of `carried` and `entry_states`, where states are carried.
  struct RecordedChain {
    std::function<void(int first)> see_from;  // from here on rows see no entry before that one
    // At level 0: entries keep the numbers [column, column + dim) of their states, rows[rows, dim], or rows
    // get these numbers of the entries before theirs.
    std::function<void(FloatAddress rows, int64_t dim, int64_t column)> keep, bring;
  };
  struct Pass {
    const ForwardBatch* batch = nullptr;
    KvCache* cache = nullptr;
    int level = 0;              // of the tree; 0: committed tokens
    FloatAddress inputs = {};   // [rows, feature_size()]; below: the states of parents, [rows, state_size()]
    FloatAddress carried = {};  // level 0, where states are carried: [sequences, state_size()]
    bool wants_logits = true;   // of the rows that the batch says; else only their states
    FloatAddress entry_states = {};  // level 0, where states are carried: takes all rows' states; or none
    const RecordedChain* recorded = nullptr;
  };
  struct Output {
    std::span<const float> logits;  // [wanted rows, vocab_size of the target]
    FloatAddress states;            // [wanted rows, state_size()], valid until the next pass
    FloatAddress logit_rows = {};   // the same logits in the memory of the backend
  };
  virtual Output forward(const Pass& pass) = 0;
  // Whether a device can record its passes: they are operations over the batch's rows.
  virtual bool can_be_recorded() const { return false; }
  // The backend beside the target's that also computes its passes; null: there is none.
  virtual LayerBackend* own_backend() { return nullptr; }
  // Makes room for passes of that size: they do not allocate. Throws std::bad_alloc when memory is out.
  virtual void reserve(int64_t rows, int64_t wanted) = 0;
  // Where states are carried, also makes room for that many rows in trees over sequences of that length.
  virtual void reserve_trees(int64_t rows, int64_t tree_rows, int64_t entries) {
    if (carries_state()) layers_.reserve_hiding(rows, tree_rows, entries);
  }

 protected:
  RecurrentHead(const ModelConfig& config, Model* target, const ModelOptions& options)
      : target_(target),
        vocabulary_(target),
        hidden_size_(config.hidden_size),
        epsilon_(config.norm.epsilon),
        backend_(target->backend()),
        layers_(config, backend_, options.pool) {}

  Status pack(WeightLoader& loader) {
    OUTRIDER_TRY(memory_, loader.pack_all());
    weight_bytes_ = loader.packed_bytes();
    return {};
  }
  // Embeddings of the head's own, where its files have them.
  Status plan_own_embedding(const HeadFile& head, WeightLoader& loader) {
    if (!head.tensors.contains("embed_tokens.weight")) return {};
    return vocabulary_.plan_embedding(loader, "embed_tokens");
  }
  // The output of a pass: its wanted rows have these `states` for the output head, and go on with `kept`.
  Output output(FloatAddress states, FloatAddress kept, int64_t rows) {
    const FloatAddress logits = vocabulary_.logits(states, rows);
    return {.logits = backend_.read(logits, rows * target_->config().vocab_size),
            .states = kept,
            .logit_rows = logits};
  }
  // out[rows, 2 dim] = [a, b]
  void join(FloatAddress a, FloatAddress b, FloatAddress out, int64_t rows, int64_t dim);
  Norm norm() const { return empty_norm(epsilon_); }

  Model* target_;
  FeatureTaps taps_;
  MaskedPlace masked_place_;
  HeadVocabulary vocabulary_;
  int64_t hidden_size_;
  float epsilon_;  // of norms
  LayerBackend& backend_;
  HeadLayers layers_;
  int64_t cache_layers_ = 1;
  WeightMemory memory_;
  int64_t weight_bytes_ = 0;
};

// The object of the config that describes the layers, in each of the published forms.
Result<JsonObject> layer_config_object(const HeadFile& head);
// The sizes of the layers. Error: a size that must be the target's differs.
Result<ModelConfig> read_head_config(const HeadFile& head, const Model& target);

}  // namespace outrider
