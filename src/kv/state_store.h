// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/state_storage.h"

namespace outrider {

// The states of all sequences of a model: which of them are taken, and what they hold. In each layer a state
// holds the first so many entries of its sequence. Staged entries leave it unchanged and have an update in
// every layer; a later pass over the layer applies the updates of the committed entries. A tree therefore
// takes an update for each node and no state, and forgetting a node costs nothing.
class StateStore {
 public:
  // The numbers lie in `storage`, which must outlive it and be without states.
  StateStore(const StateShape& shape, StateStorage& storage);

  // A state of no entries: zeros.
  int32_t take();
  void release(int32_t id);
  void reset(int32_t id);

  // Makes room for that many updates and keeps the updates that are there. Memory never shrinks, so that a
  // steady state does not allocate.
  void reserve_updates(int32_t id, int64_t count);
  // Copies an update over another, in all layers. Without effect where no pass has written either.
  void copy_update(int32_t id, int64_t from, int64_t to);
  // Copies a state with its first `updates` updates to another sequence.
  void copy(int32_t from, int64_t updates, int32_t to);
  // The numbers of a state with so many updates, in all layers, as save() and load() copy them.
  int64_t numbers(int64_t updates) const {
    return shape_.layer_count * (shape_.size + updates * shape_.update_size);
  }
  void save(int32_t id, int64_t updates, float* to) const { storage_.save(id, updates, to); }
  // The state holds so many entries in every layer.
  void load(int32_t id, int32_t entries, int64_t updates, const float* from);
  // Writes NaN over the updates from `first` on.
  void poison_updates(int32_t id, int64_t first);

  // The number of entries that the state holds in a layer.
  int32_t entries(int32_t id, int64_t layer) const {
    return slots_[static_cast<size_t>(id)].entries[static_cast<size_t>(layer)];
  }
  void set_entries(int32_t id, int64_t layer, int32_t entries) {
    slots_[static_cast<size_t>(id)].entries[static_cast<size_t>(layer)] = entries;
  }
  // The most entries that it holds in a layer, and the fewest.
  int32_t max_entries(int32_t id) const;
  int32_t min_entries(int32_t id) const;

 private:
  struct Slot {
    std::vector<int32_t> entries;  // [layer_count]
    int64_t updates = 0;           // that there is room for
  };
  void add_slot();

  StateShape shape_;
  StateStorage& storage_;
  std::vector<Slot> slots_;
  std::vector<int32_t> free_;
};

}  // namespace outrider
