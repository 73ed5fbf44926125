// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draft_heads/head_file.h"
#include "models/backend/layer_backend.h"

namespace outrider {

// The part of DFlash2 that lets the tokens of a block depend on one another. The likeliest tokens of a place
// are its candidates, and the token before the place changes their logits by sum over r of before[token][r] *
// (hidden_projection * state)[r] * after[candidate][r].
class CandidateSelector {
 public:
  struct Sizes {
    int64_t hidden = 0, vocab = 0, rank = 0, candidates = 0;
  };
  static bool is_in(const HeadFile& head);
  static void append_tensors(const Sizes& sizes, std::vector<HeadTensor>& tensors);

  CandidateSelector(const Sizes& sizes, LayerBackend& backend) : sizes_(sizes), backend_(backend) {}
  // `loader` is one of a file that has passed through with_table_names().
  Status plan(WeightLoader& loader);
  // The file with names of the two codebooks that end like the names of all matrices.
  static ModelFile with_table_names(const ModelFile& file);

  // Logits [tokens, vocab] of a place after each of these tokens, from its own [vocab] and its state
  // [hidden]; -inf for all but the candidates. Valid until the next call.
  std::span<const float> logits(FloatAddress place, FloatAddress state, std::span<const TokenId> before);

 private:
  void choose(std::span<const float> place);

  Sizes sizes_;
  LayerBackend& backend_;
  Projection gate_;               // [rank, hidden]
  PackedMatrix before_, after_;   // [vocab, rank]
  std::vector<TokenId> chosen_;   // candidates of a place
  BackendRows gates_{backend_};   // [rank]
  BackendRows codes_{backend_};   // [candidates, rank]
  BackendRows latent_{backend_};  // [tokens, rank]
  std::vector<float> gated_;      // [rank]
  std::vector<float> logits_;     // [tokens, vocab]
};

}  // namespace outrider
