// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/state_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace outrider {

StateSequence& StatePlan::begin_sequence(const ForwardBatch::StatePlace& place) {
  if (count_ == sequences_.size()) sequences_.emplace_back();
  StateSequence& sequence = sequences_[count_++];
  sequence.id = place.id;
  sequence.length = place.length;
  sequence.kept_updates = place.kept_updates;
  sequence.is_chain = place.is_chain;
  sequence.nodes.clear();
  sequence.order.clear();
  sequence.slot_count = 0;
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

// All states but the last are applied in the store.
void StatePlan::order_chain(StateSequence& sequence) const {
  sequence.order.resize(sequence.nodes.size());
  std::iota(sequence.order.begin(), sequence.order.end(), 0);
  sequence.nodes.back().to = 0;
  sequence.slot_count = 1;
}

int32_t StatePlan::slot_after(int32_t node, StateSequence& sequence) {
  const StateNode& here = sequence.nodes[static_cast<size_t>(node)];
  // The child that was listed last is visited last.
  const bool is_last = first_child_[static_cast<size_t>(here.parent + 1)] == node + 1;
  if (here.from != StateNode::kStored && is_last) return here.from;
  if (free_slots_.empty()) return sequence.slot_count++;
  const int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void StatePlan::order_tree(StateSequence& sequence) {
  const auto count = static_cast<int32_t>(sequence.nodes.size());
  first_child_.assign(static_cast<size_t>(count) + 1, 0);
  sibling_.assign(static_cast<size_t>(count) + 1, 0);
  for (int32_t node = 0; node < count; ++node) {
    int32_t& first = first_child_[static_cast<size_t>(sequence.nodes[static_cast<size_t>(node)].parent + 1)];
    sibling_[static_cast<size_t>(node) + 1] = std::exchange(first, node + 1);
  }
  free_slots_.clear();
  stack_.clear();
  const auto push_children = [&](int32_t of) {
    for (int32_t child = first_child_[static_cast<size_t>(of)]; child != 0;
         child = sibling_[static_cast<size_t>(child)])
      stack_.push_back(child - 1);
  };
  push_children(0);
  while (!stack_.empty()) {
    const int32_t node = stack_.back();
    stack_.pop_back();
    StateNode& here = sequence.nodes[static_cast<size_t>(node)];
    if (here.parent != StateNode::kCommitted) here.from = sequence.nodes[static_cast<size_t>(here.parent)].to;
    here.to = slot_after(node, sequence);
    sequence.order.push_back(node);
    if (first_child_[static_cast<size_t>(node) + 1] == 0) free_slots_.push_back(here.to);
    push_children(node + 1);
  }
}

void StatePlan::note_applied(int64_t layer, StateStore& store) const {
  for (const StateSequence& sequence : sequences()) {
    const auto applied = sequence.is_chain ? static_cast<int32_t>(sequence.nodes.size()) - 1 : 0;
    store.set_entries(sequence.id, layer, sequence.length + applied);
  }
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
    if (sequence.is_chain) {
      sequence.nodes.back().update = sequence.kept_updates;
      order_chain(sequence);
    } else {
      order_tree(sequence);
    }
    for (const StateNode& node : sequence.nodes) updates = std::max(updates, node.update + 1);
    store.reserve_updates(sequence.id, updates);
  }
}

}  // namespace outrider
