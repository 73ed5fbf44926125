// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider {

// The texts of requests that have ended, by the numbers of slots.
class SlotTexts {
 public:
  explicit SlotTexts(int count) : slots_(static_cast<size_t>(count)) {}

  // Remembers a text. Where there is no such slot, it chooses the one with the text of the scope that has the
  // longest beginning in common with it, at least half of that text. Else it takes the one used least
  // recently.
  void keep(int slot, std::span<const TokenId> tokens, uint64_t scope);
  // Error: no such slot.
  Status check(int slot) const;
  // Precondition for the next two: check(slot). Empty: it has no text of that scope.
  std::span<const TokenId> text(int slot, uint64_t scope) const;
  void erase(int slot) { slots_[static_cast<size_t>(slot)] = {}; }

 private:
  struct Slot {
    std::vector<TokenId> tokens;
    uint64_t scope = 0;
    int64_t last_use = 0;
  };
  size_t choose(std::span<const TokenId> tokens, uint64_t scope) const;

  std::vector<Slot> slots_;
  int64_t uses_ = 0;
};

}  // namespace outrider
