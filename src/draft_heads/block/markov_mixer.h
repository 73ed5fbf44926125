// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "draft_heads/head_file.h"
#include "models/backend/layer_backend.h"

namespace outrider {

// Kinds of DSpark's head, by the input of the bias of a place. It is the embedding of the token before
// (kVanilla). Gates of the state multiply it (kGated), or a cell that has read all places before changes it
// (kRecurrent).
enum class MarkovKind { kVanilla, kGated, kRecurrent };

// Errors: a markov_head_type that is none of "vanilla", "gated" and "rnn".
Result<MarkovKind> read_markov_kind(const HeadFile& head);

// The gates or the cell of a head that is not vanilla.
class MarkovMixer {
 public:
  struct Sizes {
    MarkovKind kind = MarkovKind::kVanilla;
    int64_t rank = 0;
    int64_t hidden = 0;
  };
  static void append_tensors(const Sizes& sizes, std::vector<HeadTensor>& tensors);

  MarkovMixer(const Sizes& sizes, LayerBackend& backend) : sizes_(sizes), backend_(backend) {}
  Status plan(WeightLoader& loader);

  // Changes the embeddings [tokens, rank] of tokens before a place with that state [hidden]. `from`: the row
  // that the token's parent had in the call before, of the place before; empty: at the first place.
  void mix(FloatAddress state, std::span<const int> from, FloatAddress embeddings, int64_t tokens);

 private:
  int64_t inputs() const;
  int64_t outputs() const;
  void gate(std::span<const float> gates, std::span<const float> embeddings);
  void step(std::span<const float> joint, std::span<const int> from);
  float cell(std::span<const int> from, int64_t row, int64_t column) const;

  Sizes sizes_;
  LayerBackend& backend_;
  Projection projection_;         // [outputs, inputs]
  std::vector<float> cells_;      // [rows of the call before, rank]
  std::vector<float> next_;       // [tokens, rank]
  std::vector<float> mixed_;      // [tokens, rank]
  std::vector<int32_t> repeats_;  // zeros, one for each token
  BackendRows inputs_{backend_};  // [tokens, inputs]
  BackendRows outputs_{backend_};
  BackendRows read_cells_{backend_};  // [tokens, rank]
};

}  // namespace outrider
