// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "outrider/token_tree.h"

namespace outrider {

// Logits of the target after the nodes of one tree, node by node.
struct TreeLogits {
  std::span<const float> rows;  // of this tree and those behind it
  size_t row_size = 0;
  size_t vocab_size = 0;  // of a row these count

  std::span<const float> after(int node) const {
    return rows.subspan(static_cast<size_t>(node) * row_size, vocab_size);
  }
};

// Follows verification from the root of a tree down, and with it what the distribution of a node depends on:
// the history that penalties count, and the state of the constraint.
class TargetWalk {
 public:
  void start(Sequence& sequence, const TokenTree& tree, const TreeLogits& logits);

  // The logits that the distribution after `node` is built from: -infinity where the constraint lets no token
  // come. `node` is the one reached last, or a child of it; the first is the root. Lives until the next node.
  std::span<const float> reach(int node);
  int node() const { return node_; }  // reached last; -1 before the root

  // Takes the drafted tokens out of the history again.
  void finish();

 private:
  Sequence* sequence_ = nullptr;
  const TokenTree* tree_ = nullptr;
  TreeLogits logits_;
  int node_ = -1;
  TokenConstraint::State state_ = TokenConstraint::kDead;  // at node_
  std::span<const float> row_;                             // of node_
  std::vector<float> masked_;
};

}  // namespace outrider
