// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/stack_sets.h"

namespace outrider {

// An automaton that reads texts of a grammar byte by byte and follows all derivations at once. States are
// small numbers that are created when first reached; equal states have equal numbers. Not thread-safe.
class ByteAutomaton {
 public:
  using State = int32_t;
  static constexpr State kDead = -1;

  // A node that reads the next byte, and the set of stacks above which it was reached.
  struct Item {
    int32_t node = 0;
    StackSet stacks = 0;
    friend bool operator==(const Item&, const Item&) = default;
  };

  // `longest`: bytes of the longest token, see StackSets.
  ByteAutomaton(std::shared_ptr<const Grammar> grammar, int longest);
  ~ByteAutomaton();

  State start() const { return start_; }
  // The state after `byte`; kDead if the grammar does not allow it or the text has too many derivations to
  // follow.
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
  // For states made by local_state(): whether a derivation returned below the known part of its stack.
  bool may_escape(State state) const { return records_[state].may_escape; }
  // Sorted by stacks, then by node.
  std::span<const Item> items(State state) const {
    return {items_.data() + records_[state].begin, items_.data() + records_[state].end};
  }
  // The representative of all states that no word of `longest` bytes can tell from this one.
  State canonical(State state);
  // A state with these items, which share one stack set, above an unknown rest of the stack. Words of up to
  // `horizon` bytes are accepted as from the true state, unless they return into the unknown rest.
  struct LocalState {
    State state = kDead;
    int horizon = 0;
  };
  LocalState local_state(std::span<const Item> items);

  int32_t state_count() const { return static_cast<int32_t>(records_.size()); }
  size_t bytes() const;

 private:
  struct Record {
    size_t begin = 0, end = 0;  // range in items_
    int32_t row = -1;           // row of rows_, indexed by byte class; -1: none yet
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
  std::vector<State> rows_;        // known transitions [row][byte class]
  std::vector<State> row_owners_;  // by row: its state
  std::unique_ptr<Closure> closure_;
  State start_ = kDead;
};

}  // namespace outrider
