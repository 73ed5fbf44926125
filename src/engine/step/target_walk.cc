// SPDX-License-Identifier: Apache-2.0
#include "engine/step/target_walk.h"

#include <limits>

#include "engine/guarded_call.h"
#include "sampling/token_mask.h"

namespace outrider {

void TargetWalk::start(Sequence& sequence, const TokenTree& tree, const LogitRows& logits,
                       std::span<const TokenId> unused) {
  sequence_ = &sequence;
  tree_ = &tree;
  logits_ = logits;
  unused_ = unused;
  node_ = -1;
  state_ = sequence.constraint_state();
  failed_depth_ = -1;
}

std::span<const float> TargetWalk::reach(int node) {
  if (node == node_) return row_;
  TokenConstraint* constraint = sequence_->constraint();
  if (node != 0) {
    sequence_->history.push(tree_->token(node));
    if (constraint != nullptr) state_ = constraint->advance(state_, tree_->token(node));
  }
  node_ = node;
  row_ = logits_.row(node);
  if (constraint != nullptr) {
    mask_logits(row_, constraint->allowed(state_), masked_);
    row_ = masked_;
  }
  if (!unused_.empty()) leave_out_unused();
  const LogitsFunction& function = sequence_->request().logits_function;
  if (function && failed_depth_ < 0) call_function(function);
  return row_;
}

void TargetWalk::call_function(const LogitsFunction& function) {
  if (row_.data() != masked_.data()) masked_.assign(row_.begin(), row_.end());
  tokens_.assign(sequence_->tokens().begin(), sequence_->tokens().end());
  tokens_.resize(tokens_.size() + static_cast<size_t>(tree_->depth(node_)));
  size_t place = tokens_.size();
  for (int node = node_; node > 0; node = tree_->parent(node)) tokens_[--place] = tree_->token(node);
  if (!guarded([&] { return function(tokens_, masked_); }).ok()) failed_depth_ = tree_->depth(node_);
  row_ = masked_;
}

void TargetWalk::leave_out_unused() {
  if (row_.data() != masked_.data()) masked_.assign(row_.begin(), row_.end());
  for (const TokenId token : unused_) {
    if (static_cast<size_t>(token) < masked_.size())
      masked_[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
  row_ = masked_;
}

void TargetWalk::finish() {
  for (int node = node_; node > 0; node = tree_->parent(node)) sequence_->history.pop();
}

}  // namespace outrider
