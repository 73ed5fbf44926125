// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/state_store.h"
#include "models/forward_batch.h"

namespace outrider {

// A staged entry whose state some row of a pass needs: the entry of a row, or of an ancestor of one.
struct StateNode {
  static constexpr int32_t kCommitted = -1;
  static constexpr int32_t kOtherPass = -1;
  static constexpr int32_t kNotKept = -1;

  int32_t parent = kCommitted;  // node of the same sequence before it; kCommitted: the committed entries
  int32_t row = kOtherPass;     // number among the rows being computed; kOtherPass: an earlier pass computed it
  int32_t update = kNotKept;    // number of its update in the store; kNotKept: the pass applies it
};

// The nodes of one sequence, parents before children.
struct StateSequence {
  int32_t id = 0;  // in the store
  int32_t length = 0;
  int32_t kept_updates = 0;
  bool is_chain = false;
  std::vector<StateNode> nodes;
};

// How the rows of a pass follow one another in each sequence. Layers with states share it.
class StatePlan {
 public:
  // rows: those being computed, ascending. Makes room for their updates in the store.
  void build(const ForwardBatch& batch, std::span<const int32_t> rows, StateStore& store);
  std::span<const StateSequence> sequences() const { return {sequences_.data(), count_}; }

 private:
  StateSequence& begin_sequence(const ForwardBatch::StatePlace& place);
  void add_tree_row(const ForwardBatch& batch, size_t row, int32_t number, StateSequence& sequence);

  std::vector<StateSequence> sequences_;  // the first count_ of them are in use; all keep their memory
  size_t count_ = 0;
  std::vector<int32_t> node_of_;  // by staged entry of the sequence being planned
};

}  // namespace outrider
