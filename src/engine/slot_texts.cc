// SPDX-License-Identifier: Apache-2.0
#include "engine/slot_texts.h"

#include <algorithm>
#include <string>

namespace outrider {

size_t SlotTexts::choose(std::span<const TokenId> tokens, uint64_t scope) const {
  size_t best = slots_.size();
  int64_t longest = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const int64_t common = std::ranges::mismatch(slot.tokens, tokens).in1 - slot.tokens.begin();
    if (slot.scope != scope || common <= longest || 2 * common < std::ssize(slot.tokens)) continue;
    best = i;
    longest = common;
  }
  if (best < slots_.size()) return best;
  return static_cast<size_t>(std::ranges::min_element(slots_, {}, &Slot::last_use) - slots_.begin());
}

void SlotTexts::keep(int slot, std::span<const TokenId> tokens, uint64_t scope) {
  const size_t place = check(slot).ok() ? static_cast<size_t>(slot) : choose(tokens, scope);
  slots_[place] = {.tokens = {tokens.begin(), tokens.end()}, .scope = scope, .last_use = ++uses_};
}

Status SlotTexts::check(int slot) const {
  if (slot >= 0 && slot < std::ssize(slots_)) return {};
  return usage_error("expected a slot from 0 to " + std::to_string(slots_.size() - 1) + ", found " +
                     std::to_string(slot));
}

std::span<const TokenId> SlotTexts::text(int slot, uint64_t scope) const {
  const Slot& found = slots_[static_cast<size_t>(slot)];
  return found.scope == scope ? found.tokens : std::span<const TokenId>();
}

}  // namespace outrider
