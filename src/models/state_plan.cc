// SPDX-License-Identifier: Apache-2.0
#include "models/state_plan.h"

#include <algorithm>

namespace outrider {

StateSequence& StatePlan::begin_sequence(const ForwardBatch::StatePlace& place) {
  if (count_ == sequences_.size()) sequences_.emplace_back();
  StateSequence& sequence = sequences_[count_++];
  sequence.id = place.id;
  sequence.length = place.length;
  sequence.kept_updates = place.kept_updates;
  sequence.is_chain = place.is_chain;
  sequence.nodes.clear();
  node_of_.clear();
  return sequence;
}

// Ancestors come before the row in its tail, so that each finds its parent.
void StatePlan::add_tree_row(const ForwardBatch& batch, size_t row, int32_t number, StateSequence& sequence) {
  int32_t parent = StateNode::kCommitted;
  for (int32_t t = batch.tail_begin[row]; t < batch.tail_begin[row + 1]; ++t) {
    const int32_t staged = batch.tails[static_cast<size_t>(t)] - sequence.length;
    const auto entry = static_cast<size_t>(staged);
    if (node_of_.size() <= entry) node_of_.resize(entry + 1, StateNode::kCommitted);
    if (node_of_[entry] < 0) {
      node_of_[entry] = static_cast<int32_t>(sequence.nodes.size());
      sequence.nodes.push_back({.parent = parent, .update = sequence.kept_updates + staged});
    }
    parent = node_of_[entry];
  }
  sequence.nodes[static_cast<size_t>(parent)].row = number;
}

void StatePlan::build(const ForwardBatch& batch, std::span<const int32_t> rows, StateStore& store) {
  count_ = 0;
  for (size_t i = 0; i < rows.size();) {
    const auto index = static_cast<size_t>(batch.sequences[static_cast<size_t>(rows[i])]);
    StateSequence& sequence = begin_sequence(batch.states[index]);
    int32_t updates = sequence.kept_updates;
    for (; i < rows.size(); ++i) {
      const auto row = static_cast<size_t>(rows[i]);
      if (static_cast<size_t>(batch.sequences[row]) != index) break;
      const auto number = static_cast<int32_t>(i);
      if (sequence.is_chain) {
        const auto node = static_cast<int32_t>(sequence.nodes.size());
        sequence.nodes.push_back({.parent = node - 1, .row = number});
      } else {
        add_tree_row(batch, row, number, sequence);
      }
    }
    if (sequence.is_chain) sequence.nodes.back().update = sequence.kept_updates;
    for (const StateNode& node : sequence.nodes) updates = std::max(updates, node.update + 1);
    store.reserve_updates(sequence.id, updates);
  }
}

}  // namespace outrider
