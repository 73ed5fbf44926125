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

int32_t StateCheckpoints::restore(PrefixId prefix, int32_t state) {
  const auto found = std::ranges::find(checkpoints_, prefix, &Checkpoint::prefix);
  OUTRIDER_CHECK(found != checkpoints_.end());
  found->last_use = ++uses_;
  found->is_shared = true;
  store_->copy(found->state, found->updates, state);
  return found->updates;
}

}  // namespace outrider
