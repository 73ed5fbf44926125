// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "engine/step/logit_rows.h"
#include "outrider/token_tree.h"

namespace outrider {

// Follows verification down one tree. Keeps what the distribution after a node depends on besides its logits:
// the history that penalties count, and the state of the constraint.
class TargetWalk {
 public:
  // logits: one row per node of the tree. `unused` ids are never chosen; they must outlive the walk.
  void start(Sequence& sequence, const TokenTree& tree, const LogitRows& logits,
             std::span<const TokenId> unused);

  // The logits that the distribution after `node` is built from; logits of unused ids and of tokens that the
  // constraint forbids are -infinity. Then the request's function changes them. `node` is the node reached
  // last or a child of it, and at first the root. The result lives until the next node.
  std::span<const float> reach(int node);
  int node() const { return node_; }  // reached last; -1 before the root

  // The depth of the first node after which the request's function failed; -1: none.
  int failed_depth() const { return failed_depth_; }

  // Takes the drafted tokens out of the history again.
  void finish();

 private:
  void leave_out_unused();
  void call_function(const LogitsFunction& function);

  Sequence* sequence_ = nullptr;
  const TokenTree* tree_ = nullptr;
  LogitRows logits_;
  std::span<const TokenId> unused_;
  int node_ = -1;
  TokenConstraint::State state_ = TokenConstraint::kDead;  // after node_
  std::span<const float> row_;                             // logits after node_
  std::vector<float> masked_;                              // row_ without what is never chosen
  std::vector<TokenId> tokens_;                            // of the sequence, up to node_
  int failed_depth_ = -1;
};

}  // namespace outrider
