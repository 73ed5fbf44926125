// SPDX-License-Identifier: Apache-2.0
#include "drafters/suffix/suffix_nodes.h"

#include "base/counter_rng.h"

namespace outrider {
namespace {

constexpr size_t kFirstSlots = 64;

}  // namespace

void SuffixNodes::clear() {
  nodes_ = std::vector<SuffixNode>(1);
  free_nodes_ = std::vector<int>();  // unlike {}, this gives memory back
  runs_ = std::vector<Run>();
  free_runs_ = std::vector<int>();
  slots_ = std::vector<Slot>(kFirstSlots);
  used_ = 0;
}

int SuffixNodes::child(int node, TokenId token) const { return slots_[find_slot(key_of(node, token))].child; }

int SuffixNodes::add_child(int parent, TokenId token) {
  const int added = new_node();
  SuffixNode& node = (*this)[added];
  node.parent = parent;
  node.count = 1;
  insert(parent, token, added);
  const int last = (*this)[parent].last_child;
  if (last == kNoNode || (*this)[last].count > 1) {
    link(added, last, kNoNode);
    node.run = new_run(added);
  } else {
    node.run = (*this)[last].run;
    Run& run = runs_[static_cast<size_t>(node.run)];
    link(added, (*this)[run.first].previous, run.first);
    run.first = added;
  }
  return added;
}

void SuffixNodes::remove_child(int child, TokenId token) {
  erase((*this)[child].parent, token);
  leave_run(child);
  unlink(child);
  free_nodes_.push_back(child);
}

void SuffixNodes::increase(int node) {
  SuffixNode& one = (*this)[node];
  ++one.count;
  if (node == kRoot) return;
  const int first = runs_[static_cast<size_t>(one.run)].first;
  const int higher = (*this)[first].previous;
  leave_run(node);
  int before = first;
  if (higher != kNoNode && (*this)[higher].count == one.count) {
    one.run = (*this)[higher].run;
    Run& run = runs_[static_cast<size_t>(one.run)];
    before = run.first;
    run.first = node;
  } else {
    one.run = new_run(node);
  }
  if (before == node) return;
  unlink(node);
  link(node, (*this)[before].previous, before);
}

void SuffixNodes::decrease(int node) {
  SuffixNode& one = (*this)[node];
  --one.count;
  if (node == kRoot) return;
  const int last = runs_[static_cast<size_t>(one.run)].last;
  const int lower = (*this)[last].next;
  leave_run(node);
  int after = last;
  if (lower != kNoNode && (*this)[lower].count == one.count) {
    one.run = (*this)[lower].run;
    Run& run = runs_[static_cast<size_t>(one.run)];
    after = run.last;
    run.last = node;
  } else {
    one.run = new_run(node);
  }
  if (after == node) return;
  unlink(node);
  link(node, after, (*this)[after].next);
}

int SuffixNodes::insert_above(int lower, TokenId token, TokenId lower_token) {
  const int added = new_node();
  SuffixNode& node = (*this)[added];
  SuffixNode& below = (*this)[lower];
  node.parent = below.parent;
  node.count = below.count;
  node.run = below.run;
  Run& run = runs_[static_cast<size_t>(node.run)];
  if (run.first == lower) run.first = added;
  if (run.last == lower) run.last = added;
  const int previous = below.previous;
  const int next = below.next;
  unlink(lower);
  link(added, previous, next);
  slots_[find_slot(key_of(node.parent, token))].child = added;

  below.parent = added;
  link(lower, kNoNode, kNoNode);
  below.run = new_run(lower);
  insert(added, lower_token, lower);
  return added;
}

void SuffixNodes::remove_above_only_child(int node, TokenId token, TokenId child_token) {
  SuffixNode& one = (*this)[node];
  const int lower = one.first_child;
  SuffixNode& below = (*this)[lower];
  erase(node, child_token);
  leave_run(lower);
  below.parent = one.parent;
  below.run = one.run;
  Run& run = runs_[static_cast<size_t>(one.run)];
  if (run.first == node) run.first = lower;
  if (run.last == node) run.last = lower;
  const int previous = one.previous;
  const int next = one.next;
  unlink(node);
  link(lower, previous, next);
  slots_[find_slot(key_of(one.parent, token))].child = lower;
  free_nodes_.push_back(node);
}

void SuffixNodes::rename_child(int child, TokenId token, TokenId new_token) {
  const int parent = (*this)[child].parent;
  erase(parent, token);
  insert(parent, new_token, child);
}

size_t SuffixNodes::bytes() const {
  return nodes_.capacity() * sizeof(SuffixNode) + runs_.capacity() * sizeof(Run) +
         slots_.capacity() * sizeof(Slot) + (free_nodes_.capacity() + free_runs_.capacity()) * sizeof(int);
}

int SuffixNodes::new_node() {
  if (free_nodes_.empty()) {
    nodes_.emplace_back();
    return static_cast<int>(nodes_.size() - 1);
  }
  const int node = free_nodes_.back();
  free_nodes_.pop_back();
  (*this)[node] = {};
  return node;
}

int SuffixNodes::new_run(int node) {
  if (free_runs_.empty()) {
    runs_.push_back({node, node});
    return static_cast<int>(runs_.size() - 1);
  }
  const int run = free_runs_.back();
  free_runs_.pop_back();
  runs_[static_cast<size_t>(run)] = {node, node};
  return run;
}

// Precondition: still linked.
void SuffixNodes::leave_run(int node) {
  const SuffixNode& one = (*this)[node];
  Run& run = runs_[static_cast<size_t>(one.run)];
  if (run.first == run.last) {
    free_runs_.push_back(one.run);
  } else if (run.first == node) {
    run.first = one.next;
  } else if (run.last == node) {
    run.last = one.previous;
  }
}

void SuffixNodes::unlink(int node) {
  const SuffixNode& one = (*this)[node];
  SuffixNode& parent = (*this)[one.parent];
  (one.previous == kNoNode ? parent.first_child : (*this)[one.previous].next) = one.next;
  (one.next == kNoNode ? parent.last_child : (*this)[one.next].previous) = one.previous;
}

void SuffixNodes::link(int node, int previous, int next) {
  SuffixNode& one = (*this)[node];
  SuffixNode& parent = (*this)[one.parent];
  one.previous = previous;
  one.next = next;
  (previous == kNoNode ? parent.first_child : (*this)[previous].next) = node;
  (next == kNoNode ? parent.last_child : (*this)[next].previous) = node;
}

size_t SuffixNodes::home(uint64_t key) const { return mix64(key) & (slots_.size() - 1); }

size_t SuffixNodes::find_slot(uint64_t key) const {
  size_t slot = home(key);
  while (slots_[slot].key != key && slots_[slot].key != kFree) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void SuffixNodes::insert(int node, TokenId token, int child) {
  if (8 * (used_ + 1) > 5 * slots_.size()) grow();
  const uint64_t key = key_of(node, token);
  slots_[find_slot(key)] = {key, child};
  ++used_;
}

// Moves back what came after, so that no search stops at the hole.
void SuffixNodes::erase(int node, TokenId token) {
  const size_t mask = slots_.size() - 1;
  size_t hole = find_slot(key_of(node, token));
  for (size_t slot = (hole + 1) & mask; slots_[slot].key != kFree; slot = (slot + 1) & mask) {
    const size_t distance = (slot - home(slots_[slot].key)) & mask;
    if (distance < ((slot - hole) & mask)) continue;
    slots_[hole] = slots_[slot];
    hole = slot;
  }
  slots_[hole] = {};
  --used_;
}

void SuffixNodes::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.key != kFree) slots_[find_slot(slot.key)] = slot;
  }
}

}  // namespace outrider
