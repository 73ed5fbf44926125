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

  void reserve(int64_t tokens);
  // Before mix() for a place: the cells of its tokens' parents. `from`: the row that each had in the call
  // before, of the place before; empty: at the first place.
  void carry(std::span<const int> from, int64_t tokens);
  void clear_cells(int64_t tokens);  // as carry() at the first place
  // Changes the embeddings [tokens, rank] of tokens before places. Token i is before a place with the state
  // i % count.
  struct States {
    FloatAddress numbers;  // [count, hidden]
    int64_t count = 1;
  };
  void mix(const States& states, FloatAddress embeddings, int64_t tokens);

  // For passes that a device records: the cells [tokens, rank] that mix() reads, in place of carry(), and the
  // cells after it. Without cells no numbers are read.
  FloatAddress cells_before() const { return before_.data(); }
  FloatAddress cells() const { return cells_.data(); }
  int64_t cell_size() const { return is_cell() ? sizes_.rank : 0; }

 private:
  bool is_cell() const { return sizes_.kind == MarkovKind::kRecurrent; }
  int64_t inputs() const;
  int64_t outputs() const;

  Sizes sizes_;
  LayerBackend& backend_;
  Projection projection_;         // [outputs, inputs]
  BackendRows inputs_{backend_};  // [tokens, inputs]
  BackendRows outputs_{backend_};
  BackendRows before_{backend_}, cells_{backend_};  // [tokens, rank]
};

}  // namespace outrider
