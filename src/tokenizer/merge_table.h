// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counter_rng.h"
#include "outrider/token.h"

namespace outrider {

// The token that two neighbours merge into, and the rank of that merge.
struct Merge {
  int32_t rank = 0;
  TokenId merged = 0;
};

// A hash table from pairs of ids to merges; open addressing with linear probing, at most half full.
class MergeTable {
 public:
  explicit MergeTable(size_t merges) : slots_(std::bit_ceil(merges * 2 + 1)) {}

  // Precondition: no more distinct pairs than the constructor was given. An existing pair is overwritten.
  void insert(TokenId left, TokenId right, Merge merge) {
    Slot& slot = slots_[find_slot(key_of(left, right))];
    slot = {key_of(left, right), merge};
  }

  const Merge* find(TokenId left, TokenId right) const {
    const Slot& slot = slots_[find_slot(key_of(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.merge;
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are below 2^31, so no pair has this key
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };

  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  size_t find_slot(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t index = mix64(key) & mask;
    while (slots_[index].key != kEmpty && slots_[index].key != key) index = (index + 1) & mask;
    return index;
  }

  std::vector<Slot> slots_;
};

}  // namespace outrider
