// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"

namespace outrider {

using StackSet = int32_t;

// Where a procedure returns to: `node`, having run a loop there `count` times, above one of the stacks
// `below`.
struct StackFrame {
  int32_t node = 0;
  int32_t count = 0;
  StackSet below = 0;
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

// Values of any size as small numbers, equal values equal numbers.
class InternTable {
 public:
  // The number of the value with this hash for which `equals(number)` holds; -1: none.
  template <typename Equals>
  int32_t find(uint64_t hash, const Equals& equals) const {
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (equals(it->second)) return it->second;
    }
    return -1;
  }
  void insert(uint64_t hash, int32_t number) { by_hash_.emplace(hash, number); }

 private:
  std::unordered_multimap<uint64_t, int32_t> by_hash_;
};

// Sets of stacks of frames. A set is known by its top frames, each once, with all that may lie below it: so
// sets that grow exponentially in the number of stacks stay small. Equal sets have equal numbers.
class StackSets {
 public:
  static constexpr StackSet kNone = 0;      // no stack at all
  static constexpr StackSet kBottom = 1;    // only the end of the text
  static constexpr StackSet kUnknown = 2;   // only the unknown
  static constexpr StackSet kTooMany = -1;  // beyond the limits

  // Words of at most `longest` bytes are ever read between two looks at canonical().
  StackSets(const Grammar& grammar, int longest);

  std::span<const StackFrame> frames(StackSet set) const {
    return {frames_.data() + begin_[set], frames_.data() + begin_[set + 1]};
  }
  // The set of these stacks; `frames` is used up.
  StackSet make(std::vector<StackFrame>& frames);
  StackSet unite(StackSet a, StackSet b) { return unite(a, b, 0); }
  // The set with counts in the place of which no word of `longest` bytes can tell the true ones.
  StackSet canonical(StackSet set) const { return canonical_[set]; }
  // The frames of loops on top, where there is but one stack, and the unknown below; with counts that no word
  // of `horizon` bytes can tell from the true ones.
  struct LocalContext {
    StackSet stacks = kUnknown;
    int horizon = 0;
  };
  // The longest horizon that makes the true counts matter least: of long loops most contexts are the same.
  LocalContext local_context(StackSet set);

  size_t bytes() const { return frames_.capacity() * sizeof(StackFrame) + begin_.size() * 64; }

 private:
  StackSet unite(StackSet a, StackSet b, int depth);
  // Sorts, joins frames that differ in what lies below, leaves out those that others cover.
  bool normalize(std::vector<StackFrame>& frames, int depth);
  StackSet intern(const std::vector<StackFrame>& frames);
  // The count that stands for all counts no word of `horizon` bytes tells from it.
  int32_t canonical_count(const StackFrame& frame, int horizon) const;
  bool is_far_from_bounds(const StackFrame& frame, int horizon) const;
  const Grammar::Loop* loop_of(int32_t node) const;

  const Grammar& grammar_;
  const int longest_;
  std::vector<StackFrame> frames_;
  std::vector<size_t> begin_;
  std::vector<StackSet> canonical_;
  InternTable table_;
  std::unordered_map<uint64_t, StackSet> unions_;  // keyed by the pair
};

}  // namespace outrider
