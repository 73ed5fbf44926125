// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/state_store.h"
#include "models/forward_batch.h"

namespace outrider {

// A staged entry with a state that some row of a pass needs: the entry of a row, or of an ancestor of one.
struct StateNode {
  static constexpr int32_t kCommitted = -1;
  static constexpr int32_t kOtherPass = -1;
  static constexpr int32_t kNotKept = -1;
  static constexpr int32_t kStored = -1;

  int32_t parent = kCommitted;  // node of the same sequence before it; kCommitted: the committed entries
  int32_t row = kOtherPass;   // number among the rows being computed; kOtherPass: an earlier pass computed it
  int32_t update = kNotKept;  // number of its update in the store; kNotKept: the pass applies it
  // For layers with states that a pass goes through one by one: the slot of scratch that has the state before
  // the node, and the slot for the state after it. A kStored slot is the state in the store.
  int32_t from = kStored;
  int32_t to = kStored;
};

// The nodes of one sequence, parents before children.
struct StateSequence {
  int32_t id = 0;  // in the store
  int32_t length = 0;
  int32_t kept_updates = 0;
  bool is_chain = false;
  std::vector<StateNode> nodes;
  // [nodes]: an order in which few states have to be there at the same time. The children of a node follow it
  // one subtree after the other, and the last of them may write over the state of the node.
  std::vector<int32_t> order;
  int32_t slot_count = 0;
};

// The states of one layer, as a pass over its rows finds them and changes them.
class LayerStates {
 public:
  // The numbers of the states of `store` lie in `numbers`. layer: of the store
  LayerStates(const StateStore& store, HostStates& numbers, int64_t layer)
      : store_(store), numbers_(numbers), layer_(layer) {}

  // [size]
  float* state(const StateSequence& sequence) const { return numbers_.state(sequence.id, layer_); }
  // [update_size], by its number in the store
  float* update(const StateSequence& sequence, int32_t number) const {
    return numbers_.update(sequence.id, number, layer_);
  }
  // Calls apply(update) for each committed entry that the state does not hold yet, in their order.
  template <typename Apply>
  void for_each_committed(const StateSequence& sequence, Apply&& apply) const {
    const int32_t first_kept = sequence.length - sequence.kept_updates;
    for (int32_t entry = store_.entries(sequence.id, layer_); entry < sequence.length; ++entry)
      apply(update(sequence, entry - first_kept));
  }

 private:
  const StateStore& store_;
  HostStates& numbers_;
  int64_t layer_;
};

// How the rows of a pass follow one another in each sequence. Layers with states share it.
class StatePlan {
 public:
  // rows: the rows being computed, ascending. Makes room for their updates in the store.
  void build(const ForwardBatch& batch, std::span<const int32_t> rows, StateStore& store);
  std::span<const StateSequence> sequences() const { return {sequences_.data(), count_}; }
  // The states of a layer of the store hold what was committed, and the chains that the pass applied.
  void note_applied(int64_t layer, StateStore& store) const;

 private:
  StateSequence& begin_sequence(const ForwardBatch::StatePlace& place);
  void add_tree_row(const ForwardBatch& batch, size_t row, int32_t number, StateSequence& sequence);
  void order_chain(StateSequence& sequence) const;
  void order_tree(StateSequence& sequence);
  // Chooses the slot for the state after a node.
  int32_t slot_after(int32_t node, StateSequence& sequence);

  std::vector<StateSequence> sequences_;  // the first count_ of them are in use; all keep their memory
  size_t count_ = 0;
  // Scratch of the sequence being planned.
  std::vector<int32_t> node_of_;  // by staged entry
  std::vector<int32_t> first_child_,
      sibling_;  // by node, after one for the committed entries; 0: there is none
  std::vector<int32_t> stack_, free_slots_;
};

}  // namespace outrider
