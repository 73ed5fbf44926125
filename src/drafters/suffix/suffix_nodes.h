// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "outrider/token.h"

namespace outrider {

constexpr int kNoNode = -1;

// The suffix of a text that starts at `position`; no suffix: text == -1.
struct SuffixId {
  int text = -1;
  int position = 0;
  bool operator==(const SuffixId&) const = default;
};

// A node of a suffix tree. The tokens of its edge, from its parent down to it, are in `text` from `start`
// on.
struct SuffixNode {
  int parent = kNoNode;
  int text = -1;
  int start = 0;
  int depth = 0;  // tokens from the root to here; meaningless without children: see SuffixTree
  int count = 0;  // suffixes that end here or below
  int first_child = kNoNode, last_child = kNoNode;
  int previous = kNoNode, next = kNoNode;  // siblings, in falling order of count
  int run = -1;                            // number of the run of siblings with the same count
  SuffixId first_end;                      // first of the list of suffixes that end here
};

// Node 0, the root, and nodes below it. Children are found by the first token of their edge, and stand in
// falling order of count, the one counted last first among equals: all in constant time, since counts change
// by 1.
class SuffixNodes {
 public:
  static constexpr int kRoot = 0;

  SuffixNodes() { clear(); }
  void clear();  // removes all nodes but the root, and releases the memory

  SuffixNode& operator[](int node) { return nodes_[static_cast<size_t>(node)]; }
  const SuffixNode& operator[](int node) const { return nodes_[static_cast<size_t>(node)]; }

  int child(int node, TokenId token) const;

  // A child with count 1 and without edge yet.
  int add_child(int parent, TokenId token);
  void remove_child(int child, TokenId token);  // which has no children
  void increase(int node);
  void decrease(int node);

  // A new node between `lower`, reached by `token`, and its parent; `lower` becomes its child by
  // `lower_token`.
  int insert_above(int lower, TokenId token, TokenId lower_token);
  // Gives the place of `node` to its only child.
  void remove_above_only_child(int node, TokenId token, TokenId child_token);
  // The edge of `child` starts with another token now.
  void rename_child(int child, TokenId token, TokenId new_token);

  bool has_only_child(int node) const {
    const SuffixNode& one = (*this)[node];
    return one.first_child != kNoNode && one.first_child == one.last_child;
  }

  int size() const { return static_cast<int>(nodes_.size() - free_nodes_.size()); }
  size_t bytes() const;

 private:
  struct Run {
    int first = kNoNode, last = kNoNode;
  };
  struct Slot {
    uint64_t key = kFree;
    int child = kNoNode;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};

  int new_node();
  int new_run(int node);
  void leave_run(int node);
  void unlink(int node);
  void link(int node, int previous, int next);

  static uint64_t key_of(int node, TokenId token) {
    return static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(token);
  }
  size_t home(uint64_t key) const;
  size_t find_slot(uint64_t key) const;  // the slot of that key, or the free one where it belongs
  void insert(int node, TokenId token, int child);
  void erase(int node, TokenId token);
  void grow();

  std::vector<SuffixNode> nodes_;
  std::vector<int> free_nodes_;
  std::vector<Run> runs_;
  std::vector<int> free_runs_;
  // Open addressing, linear probing; a power of two, at most 5/8 in use.
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace outrider
