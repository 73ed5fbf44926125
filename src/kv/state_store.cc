// SPDX-License-Identifier: Apache-2.0
#include "kv/state_store.h"

#include <algorithm>
#include <limits>

namespace outrider {

StateStore::StateStore(const StateShape& shape) : shape_(shape) {
  for (int64_t i = 0; i < shape.sequence_count && shape.layer_count > 0; ++i) add_slot();
}

void StateStore::add_slot() {
  free_.push_back(static_cast<int32_t>(slots_.size()));
  slots_.push_back({.states = std::vector<float>(static_cast<size_t>(shape_.layer_count * shape_.size)),
                    .updates = {},
                    .entries = std::vector<int32_t>(static_cast<size_t>(shape_.layer_count))});
}

int32_t StateStore::take() {
  if (free_.empty()) add_slot();
  const int32_t id = free_.back();
  free_.pop_back();
  reset(id);
  return id;
}

void StateStore::release(int32_t id) { free_.push_back(id); }

void StateStore::reset(int32_t id) {
  Slot& slot = slots_[static_cast<size_t>(id)];
  std::ranges::fill(slot.states, 0.0F);
  std::ranges::fill(slot.entries, 0);
}

void StateStore::reserve_updates(int32_t id, int64_t count) {
  std::vector<float>& updates = slots_[static_cast<size_t>(id)].updates;
  const auto wanted = static_cast<size_t>(count * numbers_of_update());
  if (updates.size() < wanted) updates.resize(wanted, std::numeric_limits<float>::quiet_NaN());
}

void StateStore::copy_update(int32_t id, int64_t from, int64_t to) {
  const std::vector<float>& updates = slots_[static_cast<size_t>(id)].updates;
  const bool is_written = std::ssize(updates) >= (std::max(from, to) + 1) * numbers_of_update();
  if (from != to && is_written) std::copy_n(update(id, from, 0), numbers_of_update(), update(id, to, 0));
}

void StateStore::copy(int32_t from, int64_t updates, int32_t to) {
  const Slot& source = slots_[static_cast<size_t>(from)];
  Slot& target = slots_[static_cast<size_t>(to)];
  target.states = source.states;
  target.entries = source.entries;
  reserve_updates(to, updates);
  std::copy_n(source.updates.begin(), updates * numbers_of_update(), target.updates.begin());
}

void StateStore::poison_updates(int32_t id, int64_t first) {
  std::vector<float>& updates = slots_[static_cast<size_t>(id)].updates;
  const auto begin = std::min(std::ssize(updates), first * numbers_of_update());
  std::fill(updates.begin() + begin, updates.end(), std::numeric_limits<float>::quiet_NaN());
}

int32_t StateStore::max_entries(int32_t id) const {
  return *std::ranges::max_element(slots_[static_cast<size_t>(id)].entries);
}

int32_t StateStore::min_entries(int32_t id) const {
  return *std::ranges::min_element(slots_[static_cast<size_t>(id)].entries);
}

}  // namespace outrider
