// SPDX-License-Identifier: Apache-2.0
#include "kv/state_checkpoints.h"

#include <algorithm>

#include "base/check.h"

namespace outrider {

bool StateCheckpoints::has(PrefixId prefix) const {
  return std::ranges::find(checkpoints_, prefix, &Checkpoint::prefix) != checkpoints_.end();
}

StateCheckpoints::Checkpoint& StateCheckpoints::place_for(PrefixId previous) {
  const auto own = std::ranges::find(checkpoints_, previous, &Checkpoint::prefix);
  if (own != checkpoints_.end() && !own->is_shared) return *own;
  if (std::ssize(checkpoints_) < max_count_) {
    checkpoints_.push_back({.state = store_->take()});
    return checkpoints_.back();
  }
  return *std::ranges::min_element(checkpoints_, {}, &Checkpoint::last_use);
}

bool StateCheckpoints::keep(PrefixId prefix, int32_t state, int32_t updates, PrefixId previous) {
  if (max_count_ == 0 || has(prefix)) return false;
  Checkpoint& place = place_for(previous);
  store_->copy(state, updates, place.state);
  place = {.prefix = prefix, .state = place.state, .updates = updates, .last_use = ++uses_};
  return true;
}

StateCheckpoints::Copy StateCheckpoints::save(PrefixId prefix) const {
  const auto found = std::ranges::find(checkpoints_, prefix, &Checkpoint::prefix);
  OUTRIDER_CHECK(found != checkpoints_.end());
  Copy copy{.entries = store_->max_entries(found->state), .updates = found->updates, .numbers = {}};
  copy.numbers.resize(static_cast<size_t>(store_->numbers(found->updates)));
  store_->save(found->state, found->updates, copy.numbers.data());
  return copy;
}

bool StateCheckpoints::load(PrefixId prefix, const Copy& copy) {
  if (max_count_ == 0 || has(prefix)) return false;
  Checkpoint& place = place_for(kEmptyPrefix);
  store_->load(place.state, copy.entries, copy.updates, copy.numbers.data());
  place = {.prefix = prefix, .state = place.state, .updates = copy.updates, .last_use = ++uses_};
  return true;
}

std::vector<PrefixId> StateCheckpoints::prefixes() const {
  std::vector<PrefixId> prefixes;
  for (const Checkpoint& checkpoint : checkpoints_) prefixes.push_back(checkpoint.prefix);
  return prefixes;
}

int32_t StateCheckpoints::restore(PrefixId prefix, int32_t state) {
  const auto found = std::ranges::find(checkpoints_, prefix, &Checkpoint::prefix);
  OUTRIDER_CHECK(found != checkpoints_.end());
  found->last_use = ++uses_;
  found->is_shared = true;
  store_->copy(found->state, found->updates, state);
  return found->updates;
}

}  // namespace outrider
