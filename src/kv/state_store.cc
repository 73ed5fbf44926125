// SPDX-License-Identifier: Apache-2.0
#include "kv/state_store.h"

#include <algorithm>

namespace outrider {

StateStore::StateStore(const StateShape& shape, StateStorage& storage) : shape_(shape), storage_(storage) {
  for (int64_t i = 0; i < shape.sequence_count && shape.layer_count > 0; ++i) add_slot();
}

void StateStore::add_slot() {
  free_.push_back(static_cast<int32_t>(slots_.size()));
  slots_.push_back({.entries = std::vector<int32_t>(static_cast<size_t>(shape_.layer_count)), .updates = 0});
  storage_.add();
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
  storage_.clear(id);
  std::ranges::fill(slots_[static_cast<size_t>(id)].entries, 0);
}

void StateStore::reserve_updates(int32_t id, int64_t count) {
  int64_t& room = slots_[static_cast<size_t>(id)].updates;
  if (room >= count) return;
  storage_.add_updates(id, room, count - room);
  room = count;
}

void StateStore::copy_update(int32_t id, int64_t from, int64_t to) {
  const bool is_written = std::max(from, to) < slots_[static_cast<size_t>(id)].updates;
  if (from != to && is_written) storage_.copy_update(id, from, to);
}

void StateStore::copy(int32_t from, int64_t updates, int32_t to) {
  slots_[static_cast<size_t>(to)].entries = slots_[static_cast<size_t>(from)].entries;
  reserve_updates(to, updates);
  storage_.copy(from, updates, to);
}

void StateStore::load(int32_t id, int32_t entries, int64_t updates, const float* from) {
  std::ranges::fill(slots_[static_cast<size_t>(id)].entries, entries);
  reserve_updates(id, updates);
  storage_.load(id, updates, from);
}

void StateStore::poison_updates(int32_t id, int64_t first) {
  const int64_t room = slots_[static_cast<size_t>(id)].updates;
  if (first < room) storage_.poison_updates(id, first, room - first);
}

int32_t StateStore::max_entries(int32_t id) const {
  return *std::ranges::max_element(slots_[static_cast<size_t>(id)].entries);
}

int32_t StateStore::min_entries(int32_t id) const {
  return *std::ranges::min_element(slots_[static_cast<size_t>(id)].entries);
}

}  // namespace outrider
