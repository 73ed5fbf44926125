// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace outrider {

// Layers that keep a state of fixed size for each sequence, in place of keys and values of every entry.
struct StateShape {
  int64_t layer_count = 0;       // 0: the model has no such layers
  int64_t size = 0;              // numbers of a state in one layer, f32
  int64_t update_size = 0;       // numbers by which one entry changes it, f32
  int64_t sequence_count = 0;    // sequences that memory is reserved for; more take memory when they begin
  int64_t checkpoint_count = 0;  // copies of states kept for later sequences; they take memory when needed

  int64_t bytes_per_sequence() const { return layer_count * size * static_cast<int64_t>(sizeof(float)); }
  bool operator==(const StateShape&) const = default;
};

// The states of all sequences of a model. In each layer a state holds the first so many entries of its
// sequence. Staged entries leave it alone and have an update in every layer; a later pass over the layer
// applies the updates of those that were committed. A tree therefore takes an update for each node and no
// state, and forgetting a node costs nothing. Not thread-safe, except that workers may write different
// numbers.
class StateStore {
 public:
  explicit StateStore(const StateShape& shape);

  // A state of no entries: zeros.
  int32_t take();
  void release(int32_t id);
  void reset(int32_t id);

  // [size]
  float* state(int32_t id, int64_t layer) {
    return slots_[static_cast<size_t>(id)].states.data() + layer * shape_.size;
  }
  // [update_size]. Precondition: room was made for it.
  float* update(int32_t id, int64_t index, int64_t layer) {
    return slots_[static_cast<size_t>(id)].updates.data() + index * numbers_of_update() +
           layer * shape_.update_size;
  }
  // Makes room for that many updates and keeps those that are there. Memory never shrinks, so that a steady
  // state does not allocate.
  void reserve_updates(int32_t id, int64_t count);
  // Copies an update over another, in all layers. Without effect where no pass has written either.
  void copy_update(int32_t id, int64_t from, int64_t to);
  // Makes a state with its first `updates` updates that of another sequence.
  void copy(int32_t from, int64_t updates, int32_t to);
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
    std::vector<float> states;     // [layer_count, size]
    std::vector<float> updates;    // [index, layer_count, update_size]
    std::vector<int32_t> entries;  // [layer_count]
  };
  int64_t numbers_of_update() const { return shape_.layer_count * shape_.update_size; }
  void add_slot();

  StateShape shape_;
  std::deque<Slot> slots_;
  std::vector<int32_t> free_;
};

}  // namespace outrider
