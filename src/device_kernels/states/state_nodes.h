// SPDX-License-Identifier: Apache-2.0
// The nodes of a pass in layers that keep states (models/blocks/state_plan.h), as kernels read them. The
// nodes of a sequence follow one another: committed entries that its state does not hold yet, then the nodes
// of its tree or chain, parents before children. Lists that were recorded have room for more nodes.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

inline constexpr int kNoNode = -1;

struct StateNodes {
  static constexpr int kNumbers = 6;
  List<int> numbers;  // [nodes, kNumbers]

  SIMT int of(int node, int number) const {
    return numbers.load_one(static_cast<int64_t>(node) * kNumbers + number);
  }
  SIMT int parent(int node) const { return of(node, 0); }  // kNoNode: the state
  SIMT int row(int node) const { return of(node, 1); }     // -1: an earlier pass computed it
  SIMT int update(int node) const { return of(node, 2); }  // among the updates of the storage
  SIMT bool is_none(int node) const { return row(node) < 0 && update(node) < 0; }
  SIMT int state(int node) const { return of(node, 3); }  // number of the sequence's state
  // Slots of scratch with the state before and after the node; -1: the state in the storage.
  SIMT int from(int node) const { return of(node, 4); }
  SIMT int to(int node) const { return of(node, 5); }
};

struct StateSequences {
  static constexpr int kNumbers = 4;
  List<int> numbers;  // [sequences, kNumbers]

  SIMT int of(int sequence, int number) const {
    return numbers.load_one(static_cast<int64_t>(sequence) * kNumbers + number);
  }
  SIMT int first(int sequence) const { return of(sequence, 0); }  // node
  SIMT int nodes(int sequence) const { return of(sequence, 1); }
  SIMT int applied(int sequence) const { return of(sequence, 2); }  // first nodes, whose updates become state
  SIMT int state(int sequence) const { return of(sequence, 3); }
};

// Where the updates of nodes are: for nodes with a row in the row itself, else in the storage.
struct NodeUpdates {
  StateNodes nodes;
  Rows<const float> rows;     // rows_stride apart, the update first
  Rows<const float> updates;  // updates_stride apart
  int rows_stride;
  int updates_stride;

  SIMT Rows<const float> of(int node) const {
    const int row = nodes.row(node);
    if (row >= 0) return rows.from(static_cast<int64_t>(row) * rows_stride);
    return updates.from(static_cast<int64_t>(nodes.update(node)) * updates_stride);
  }
};

}  // namespace outrider::simt
