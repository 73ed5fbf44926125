// SPDX-License-Identifier: Apache-2.0
#include "server/calls/drafting_sessions.h"

#include <algorithm>
#include <vector>

namespace outrider {

std::shared_ptr<DraftingEntry> DraftingSessions::find(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

void DraftingSessions::end(const Key& key, LiveCalls& calls, EngineLoop& engine) {
  const std::shared_ptr<DraftingEntry> entry = find(key);
  if (entry == nullptr) return;
  entries_.erase(key);
  if (!entry->call->is_finished) calls.abandon(*entry->call, engine);
}

void DraftingSessions::expire(double left_before_ms, LiveCalls& calls, EngineLoop& engine) {
  std::vector<Key> expired;
  for (const auto& [key, entry] : entries_) {
    if (!entry->is_served() && entry->left_ms <= left_before_ms) expired.push_back(key);
  }
  for (const Key& key : expired) end(key, calls, engine);
}

size_t DraftingSessions::size_of(uint64_t scope) const {
  return static_cast<size_t>(
      std::ranges::count_if(entries_, [scope](const auto& one) { return one.first.first == scope; }));
}

}  // namespace outrider
