// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft_heads/block/block_convolution.h"
#include "draft_heads/block/candidate_selector.h"
#include "draft_heads/head_layer.h"
#include "draft_heads/markov_head.h"
#include "draft_heads/vocabulary/head_vocabulary.h"
#include "models/model.h"

namespace outrider {

struct DFlashConfig {
  ModelConfig layers;           // the drafter's own layers
  std::vector<int64_t> ids;     // layers of the target with outputs that it learns from, rising
  std::vector<bool> is_causal;  // by layer: places do not see places after them
  int64_t block_size = 0;       // the pending token and the masks after it
  int first_place = 1;          // of a block that proposes: 0: a place proposes the next token; 1: its own
  TokenId mask = 0;             // token of a place to be drafted
  int64_t draft_vocab = 0;      // tokens that it proposes
  std::vector<TokenId> vocabulary;          // the target's id of each of them; empty: they are equal
  std::optional<MarkovHead::Sizes> markov;  // DSpark's
  std::optional<BlockConvolution::Sizes> convolutions;  // DFlash2's
  std::optional<CandidateSelector::Sizes> selector;     // DFlash2's

  // Whether the token before a place changes its distribution.
  bool follows_tokens() const { return markov || selector; }
  // Whether a device can draft with it by itself.
  bool can_be_recorded() const { return !selector && !convolutions; }
  int places() const { return static_cast<int>(block_size) - first_place; }
};

// Tokens that a pass of this head drafts; nullopt: its config does not say.
Result<std::optional<int>> drafted_places(const HeadFile& head);

// Errors: keys that are missing, not supported or contradict the target; the first tensor that is missing,
// has another shape, or does not belong there.
Result<DFlashConfig> read_dflash_config(const HeadFile& head, const ModelConfig& target);

// The block drafter of arXiv 2602.06036, DFlash2's and DSpark's. For every committed token it caches keys and
// values that depend only on the token's features; the rows of a block see all of these and one another.
class DFlashNetwork {
 public:
  // Errors: as of read_dflash_config() and of loading weights. The target must outlive the network.
  static Result<std::unique_ptr<DFlashNetwork>> load(const HeadFile& head, Model* target,
                                                     const ModelOptions& options);

  const DFlashConfig& config() const { return config_; }
  FeatureTaps taps() const;
  KvShape kv_shape() const { return layers_.kv_shape(config_.layers.layer_count); }  // pages excepted
  int64_t weight_bytes() const { return weight_bytes_; }
  // Makes room for passes of so many rows.
  void reserve(int64_t rows);

  // Appends a block after the committed entries; the transaction has staged block_size entries.
  void append_block(ForwardBatch& batch, const KvSequence& sequence, const KvTransaction& staged,
                    TokenId pending) const;

  // Caches the committed tokens that are the rows of the batch; features [rows, ids.size() * hidden_size].
  void add_context(const ForwardBatch& batch, FloatAddress features, KvCache& cache);

  // The states of the rows of blocks, normalised, [rows, hidden_size], valid until the next call. Place
  // first_place + i of a block proposes the i-th token after the pending one. see(is_causal) is called before
  // the attention of each layer of a pass that is recorded, whose rows have no tails.
  FloatAddress run(const ForwardBatch& batch, KvCache& cache, const std::function<void(bool)>& see = {});
  // Logits [rows, vocab_size of the target] of such states, valid until the next call or pass of the target.
  FloatAddress logits(FloatAddress states, int64_t rows) { return vocabulary_.logits(states, rows); }
  // Logits [tokens, vocab] of a place after each of these tokens, from its own [vocab] and its state; valid
  // until the next call. The places of a block come in their order. Precondition: config().follows_tokens()
  std::span<const float> logits_after(FloatAddress place, FloatAddress state,
                                      const MarkovHead::Before& before) {
    return markov_ ? markov_->logits(place, state, before) : selector_->logits(place, state, before.tokens);
  }
  // As MarkovHead::recorded_logits().
  FloatAddress recorded_logits(const MarkovHead::Places& places, int64_t rows) {
    return markov_->recorded_logits(places, rows);
  }
  // DSpark's cells; null: there are none.
  const MarkovMixer* cells() const {
    return markov_ && markov_->mixer().cell_size() > 0 ? &markov_->mixer() : nullptr;
  }
  void reserve_recorded(int64_t rows) {
    if (markov_) markov_->reserve(rows);
  }
  // As MarkovHead::confidence(); 1 without such a head.
  float confidence(FloatAddress state, TokenId before) {
    return markov_ && markov_->has_confidence() ? markov_->confidence(state, before) : 1.0f;
  }

 private:
  DFlashNetwork(DFlashConfig config, Model* target, const ModelOptions& options);
  Status load_weights(const HeadFile& head, const ModelOptions& options);
  Status plan_second_version(const HeadFile& head, WeightLoader& loader);  // the parts that DFlash2 adds
  void run_layer(size_t index, const std::function<void(bool)>& see);

  DFlashConfig config_;
  LayerBackend& backend_;
  HeadVocabulary vocabulary_;
  // The convolutions around the two parts of a layer.
  struct Convolutions {
    explicit Convolutions(LayerBackend& backend) : attention(backend), mlp(backend) {}
    BlockConvolution attention, mlp;
  };

  std::optional<MarkovHead> markov_;
  std::optional<CandidateSelector> selector_;
  std::deque<Convolutions> convolutions_;  // by layer, where there are any
  HeadLayers layers_;
  WeightMemory memory_;
  int64_t weight_bytes_ = 0;
  Projection fuse_;  // fc
  Norm context_norm_, output_norm_;
  std::vector<HeadLayer> weights_;  // by layer
  BackendRows states_{backend_};    // [rows, hidden_size]
  BackendRows normed_{backend_};    // [rows, hidden_size]
};

}  // namespace outrider
