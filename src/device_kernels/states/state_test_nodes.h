// SPDX-License-Identifier: Apache-2.0
// Sequences with trees and chains in a pass, for tests of layers with states.
#pragma once

#include <random>
#include <utility>
#include <vector>

#include "device_kernels/kernel_comparison.h"
#include "device_kernels/states/state_nodes.h"

namespace outrider {

// Two sequences: one has committed entries that its state lacks, and a tree of which an earlier pass computed
// the first node; the other one has a chain. Every node has its own slot, but for applied ones.
struct StateTestNodes {
  static constexpr int kSequences = 2, kStates = 3;
  std::vector<int> nodes, sequences, order;
  std::vector<std::vector<int>> paths;  // by node: its ancestors in the sequence, and itself
  int count = 0, rows = 0, updates = 0, slots = 0;

  explicit StateTestNodes(uint64_t seed) {
    std::mt19937_64 engine(seed);
    const int committed = static_cast<int>(engine() % 6), tree = 2 + static_cast<int>(engine() % 7);
    for (int i = 0; i < committed; ++i) add(i - 1, -1, updates++, 2, true);
    for (int i = 0; i < tree; ++i) {
      const int parent =
          i == 0 ? committed - 1 : committed + static_cast<int>(engine() % static_cast<uint64_t>(i));
      add(parent, i == 0 ? -1 : rows, updates++, 2, false);
      rows += i == 0 ? 0 : 1;
    }
    sequences = {0, count, committed, 2};
    const int first = count, chain = 1 + static_cast<int>(engine() % 6);
    for (int i = 0; i < chain; ++i) add(i == 0 ? -1 : count - 1, rows++, -1, 1, i + 1 < chain);
    sequences.insert(sequences.end(), {first, chain, chain - 1, 1});
    for (int i = 0; i < count; ++i) order.push_back(i);
  }
  int of(int node, int number) const {
    return nodes[static_cast<size_t>(node * simt::StateNodes::kNumbers + number)];
  }
  simt::StateNodes view() const { return {{nodes.data(), std::ssize(nodes)}}; }
  simt::StateSequences sequence_view() const { return {{sequences.data(), std::ssize(sequences)}}; }

 private:
  void add(int parent, int row, int update, int state, bool is_applied) {
    const int from = parent < 0 ? -1 : of(parent, 5);
    nodes.insert(nodes.end(), {parent, row, update, state, from, is_applied ? -1 : slots++});
    paths.push_back(parent < 0 ? std::vector<int>() : paths[static_cast<size_t>(parent)]);
    paths.back().push_back(count++);
  }
};

// Updates of the nodes, in rows and in a storage.
struct TestUpdates {
  static constexpr int kRowsStride = 160, kUpdatesStride = 150;
  Floats rows, updates;

  TestUpdates(const StateTestNodes& nodes, uint64_t seed)
      : rows(adversarial_floats(static_cast<size_t>(nodes.rows * kRowsStride), seed)),
        updates(adversarial_floats(static_cast<size_t>(nodes.updates * kUpdatesStride), seed + 1)) {}
  const float* of(const StateTestNodes& nodes, int node) const {
    const int row = nodes.of(node, 1);
    if (row >= 0) return &rows[static_cast<size_t>(row * kRowsStride)];
    return &updates[static_cast<size_t>(nodes.of(node, 2) * kUpdatesStride)];
  }
  simt::NodeUpdates view(const StateTestNodes& nodes) const {
    return {.nodes = nodes.view(),
            .rows = rows_of(rows),
            .updates = rows_of(updates),
            .rows_stride = kRowsStride,
            .updates_stride = kUpdatesStride};
  }
};

}  // namespace outrider
