// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"

namespace outrider {

using StackSet = int32_t;

// A return address: `node` above one of the stacks in `below`; if it is a loop, it has run `count`
// times.
struct StackFrame {
  int32_t node = 0;
  int32_t count = 0;
  StackSet below = 0;
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

// Maps values of any size to small numbers; equal values get equal numbers.
class InternTable {
 public:
  // The number of the value with this hash for which equals(number) holds; -1: none.
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

// Sets of stacks of frames. A set is stored as its distinct top frames, each with the set of stacks below it,
// so that exponentially many stacks need little memory (a graph-structured stack). Equal sets have equal
// numbers.
class StackSets {
 public:
  static constexpr StackSet kNone = 0;      // no stack at all
  static constexpr StackSet kBottom = 1;    // only the end of the text
  static constexpr StackSet kUnknown = 2;   // only the stack of unknown content
  static constexpr StackSet kTooMany = -1;  // beyond the limits

  // `longest`: the largest number of bytes, a token's, that are read between two calls of canonical().
  StackSets(const Grammar& grammar, int longest);

  std::span<const StackFrame> frames(StackSet set) const {
    return {frames_.data() + begin_[set], frames_.data() + begin_[set + 1]};
  }
  // The set of the stacks with these top frames. Changes `frames`.
  StackSet make(std::vector<StackFrame>& frames);
  StackSet unite(StackSet a, StackSet b) { return unite(a, b, 0); }
  // The set with loop counts replaced by representatives that no word of `longest` bytes can tell from the
  // true counts.
  StackSet canonical(StackSet set) const { return canonical_[set]; }
  // The loop frames on top of a set of one stack, above the unknown stack. Their counts are representatives
  // that no word of `horizon` bytes can tell from the true counts.
  struct LocalContext {
    StackSet stacks = kUnknown;
    int horizon = 0;
  };
  // Chooses the longest horizon for which most counts of a long loop have the same representative.
  LocalContext local_context(StackSet set);

  size_t bytes() const { return frames_.capacity() * sizeof(StackFrame) + begin_.size() * 64; }

 private:
  StackSet unite(StackSet a, StackSet b, int depth);
  // Sorts the frames, merges frames that differ only in the stacks below, and drops frames that others cover.
  bool normalize(std::vector<StackFrame>& frames, int depth);
  StackSet intern(const std::vector<StackFrame>& frames);
  // The representative of all counts that no word of `horizon` bytes can tell from the frame's.
  int32_t canonical_count(const StackFrame& frame, int horizon) const;
  bool is_far_from_bounds(const StackFrame& frame, int horizon) const;
  const Grammar::Loop* loop_of(int32_t node) const;

  const Grammar& grammar_;
  const int longest_;
  std::vector<StackFrame> frames_;
  std::vector<size_t> begin_;
  std::vector<StackSet> canonical_;
  InternTable table_;
  std::unordered_map<uint64_t, StackSet> unions_;  // by pair of sets
};

}  // namespace outrider
