// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/stack_sets.h"

namespace outrider {

// The grammar read byte by byte, all ways at once. States are small numbers, made as they are met; equal ones
// have equal numbers. Not thread-safe.
class ByteAutomaton {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;

  // Of a byte that may come next, its node, and the stacks it may stand on.
  struct Item {
    int32_t node = 0;
    StackSet stacks = 0;
    friend bool operator==(const Item&, const Item&) = default;
  };

  // `longest`: see StackSets.
  ByteAutomaton(std::shared_ptr<const Grammar> grammar, int longest);
  ~ByteAutomaton();

  State start() const { return start_; }
  // kDead: this byte may not come, or the ways to read the text so far are too many to follow.
  State advance(State state, uint8_t byte) {
    if (state == kDead) return kDead;
    const int byte_class = grammar_->byte_class[byte];
    const int32_t row = records_[state].row;
    if (row >= 0) {
      const State known = rows_[static_cast<size_t>(row) * class_count_ + byte_class];
      if (known != kUnknown) return known;
    }
    return advance_anew(state, byte_class);
  }

  bool may_end(State state) const { return records_[state].may_end; }
  // A way of reading has come below what is known (of states made by local_state()).
  bool may_escape(State state) const { return records_[state].may_escape; }
  // By stacks, then by node.
  std::span<const Item> items(State state) const {
    return {items_.data() + records_[state].begin, items_.data() + records_[state].end};
  }
  // A state that no word of `longest` bytes tells from this one.
  State canonical(State state);
  // These items, which stand on the same stacks, above the unknown; what words of `horizon` bytes lead to is
  // what they lead to above the true stacks, as far as they do not escape.
  struct LocalState {
    State state = kDead;
    int horizon = 0;
  };
  LocalState local_state(std::span<const Item> items);

  int32_t state_count() const { return static_cast<int32_t>(records_.size()); }
  size_t bytes() const;

 private:
  struct Record {
    size_t begin = 0, end = 0;  // of items_
    int32_t row = -1;           // of rows_, by byte class
    State canonical = -1;
    bool may_end = false;
    bool may_escape = false;
  };
  struct Closure;
  static constexpr State kUnknown = -2;

  State advance_anew(State state, int byte_class);
  State step(State state, int byte_class);
  State intern(std::vector<Item>& items, bool may_end, bool may_escape);
  void clear_rows();

  std::shared_ptr<const Grammar> grammar_;
  const size_t class_count_;
  StackSets stacks_;
  std::vector<Record> records_;
  std::vector<Item> items_;
  InternTable table_;
  std::vector<State> rows_;        // transitions already made
  std::vector<State> row_owners_;  // states
  std::unique_ptr<Closure> closure_;
  State start_ = kDead;
};

}  // namespace outrider
