// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/drafter.h"

namespace outrider {

struct LookaheadShape {
  int columns = 4;  // W: columns of the window
  int ngram = 3;    // N: tokens of an n-gram, its key included
  int guesses = 4;  // G: n-grams kept per key and verified per step
};

// For every token the last few different continuations of ngram - 1 tokens. There is at most one entry per
// token of the vocabulary.
class LookaheadPool {
 public:
  explicit LookaheadPool(const LookaheadShape& shape)
      : length_(static_cast<size_t>(shape.ngram - 1)), max_(static_cast<size_t>(shape.guesses)) {}

  void add(TokenId key, std::span<const TokenId> continuation);
  // All continuations joined, the newest last; empty: none is known.
  std::span<const TokenId> continuations(TokenId key) const;

 private:
  size_t length_;
  size_t max_;
  std::unordered_map<TokenId, std::vector<TokenId>> continuations_;
};

// Lookahead decoding's Jacobi window (arXiv 2402.02057, 3): level 0 guesses the tokens to come. Every further
// level holds what the target chose after the level before it in the pass before. Each column, read from its
// level 0 down, is then an n-gram the target would write. Until all ngram - 1 levels are there, the window is
// wider by one column for each that is missing, since it loses one per step.
class LookaheadWindow {
 public:
  explicit LookaheadWindow(const LookaheadShape& shape) : shape_(shape), levels_(1), pool_(shape) {}

  // Moves the window to the end of the request's tokens; cells without a token get one of the prompt.
  void move_to(const DraftRequest& request);

  // Adds n-grams known to follow the pending token, then the window: column 0 of level 0 is the root, level 0
  // a chain below it, and every column hangs below its cell of level 0. A cell's level plus its column is its
  // depth in the tree. Nodes beyond the request's limits are left out.
  void draft(const DraftRequest& request, TokenTree& tree) const;

  // The target's choices after the last level become n-grams and the next level. `tree` may have lost nodes.
  void learn(const TokenTree& tree, std::span<const TokenId> choices);

 private:
  struct Level {
    int64_t start = 0;            // position of the first cell's token in the sequence
    std::vector<TokenId> tokens;  // kUnknown until move_to()
  };
  static constexpr TokenId kUnknown = -1;

  int missing_levels() const { return shape_.ngram - 1 - static_cast<int>(levels_.size()); }
  int columns() const { return shape_.columns + missing_levels(); }

  LookaheadShape shape_;
  int64_t position_ = 0;       // of the pending token
  std::vector<Level> levels_;  // level 0 lacks column 0, the pending token
  LookaheadPool pool_;
  std::vector<TokenId> ngram_;  // scratch
};

// The token for a cell of which nothing is known: some token of the prompt, equal at every call.
TokenId lookahead_filler(std::span<const TokenId> prompt, uint64_t sequence, size_t level, int64_t position);

}  // namespace outrider
