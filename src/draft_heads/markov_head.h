// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft_heads/block/markov_mixer.h"
#include "draft_heads/head_file.h"
#include "models/backend/layer_backend.h"

namespace outrider {

// The part that DSpark (arXiv 2607.05147) adds to a block drafter. Each place of a block gets a bias of low
// rank from the token before it, w2 * w1[token], and a probability that the draft there is accepted. Heads
// that are not vanilla change w1[token] first (block/markov_mixer.h).
class MarkovHead {
 public:
  // The sizes that its tensors have, by config.json and by the tensors themselves.
  struct Sizes {
    int64_t rank = 0;
    int64_t hidden = 0;
    int64_t vocab = 0;        // tokens that may come before
    int64_t draft_vocab = 0;  // tokens that it proposes
    bool has_confidence = false;
    bool reads_rank = false;  // the confidence depends on the token before, too
    MarkovKind kind = MarkovKind::kVanilla;
  };
  // Errors: an unknown kind of head; no rank.
  static Result<Sizes> read_sizes(const HeadFile& head, int64_t hidden, int64_t vocab, int64_t draft_vocab);
  static void append_tensors(const HeadFile& head, const Sizes& sizes, std::vector<HeadTensor>& tensors);

  // `ids`: the target's id of each proposed token; empty: they are equal.
  MarkovHead(const Sizes& sizes, std::vector<TokenId> ids, LayerBackend& backend)
      : sizes_(sizes), ids_(std::move(ids)), backend_(backend), mixer_(mixer_sizes(sizes), backend) {}
  Status plan(const HeadFile& head, WeightLoader& loader);
  void reserve(int64_t tokens);

  bool has_confidence() const { return sizes_.has_confidence; }
  // The tokens before a place, and for each the row that its parent had in the call before, which was about
  // the place before; `from` is empty at the first place.
  struct Before {
    std::span<const TokenId> tokens;
    std::span<const int> from;
  };
  // Logits [tokens, vocab] of a place with that state [hidden] after each of these tokens, from its own
  // [vocab]; valid until the next call.
  std::span<const float> logits(FloatAddress place, FloatAddress state, const Before& before);
  // In a pass that is recorded: the same of all its rows after their tokens, from row r % count of the
  // places.
  struct Places {
    FloatAddress logits;  // [count, vocab]
    FloatAddress states;  // [count, hidden]
    int64_t count = 0;
    bool is_first = false;  // of their blocks
  };
  FloatAddress recorded_logits(const Places& places, int64_t rows);
  const MarkovMixer& mixer() const { return mixer_; }
  // The probability that the draft at a place is accepted; state [hidden] of the place.
  float confidence(FloatAddress state, TokenId before);

 private:
  // The rows of latent_ become biases of rows of the places.
  FloatAddress add_biases(FloatAddress places, int64_t count, int64_t rows);
  static MarkovMixer::Sizes mixer_sizes(const Sizes& sizes) {
    return {.kind = sizes.kind, .rank = sizes.rank, .hidden = sizes.hidden};
  }

  Sizes sizes_;
  std::vector<TokenId> ids_;
  LayerBackend& backend_;
  MarkovMixer mixer_;
  PackedMatrix before_;            // [vocab, rank]
  Projection bias_;                // [draft_vocab, rank]
  std::vector<float> confidence_;  // [hidden], or [hidden + rank]
  float confidence_bias_ = 0.0f;
  BackendRows latent_{backend_};  // [tokens, rank]
  BackendRows biases_{backend_};  // [tokens, draft_vocab]
  BackendRows logits_{backend_};  // [tokens, vocab]
};

}  // namespace outrider
