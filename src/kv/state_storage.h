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
  int64_t first_layer = 0;       // number of the first one; the states of layers before it are elsewhere
  int64_t size = 0;              // numbers of a state in one layer, f32
  int64_t update_size = 0;       // numbers by which one entry changes it, f32
  int64_t sequence_count = 0;    // sequences that memory is reserved for; more take memory when they begin
  int64_t checkpoint_count = 0;  // copies of states kept for later sequences; they take memory when needed

  int64_t bytes_per_sequence() const { return layer_count * size * static_cast<int64_t>(sizeof(float)); }
  bool operator==(const StateShape&) const = default;
};

// The memory of states and their updates, in all layers. StateStore knows which of them mean something; where
// and how their numbers lie is a matter of the storage and of the operations that read it.
class StateStorage {
 public:
  StateStorage() = default;
  virtual ~StateStorage() = default;
  StateStorage(const StateStorage&) = delete;
  StateStorage& operator=(const StateStorage&) = delete;

  // Adds a state of zeros without updates. The first is number 0, and each later one the next.
  virtual void add() = 0;
  // Makes all numbers of a state 0.
  virtual void clear(int32_t id) = 0;
  // Makes room for `count` updates, which are NaN, after the `kept` that there was room for.
  virtual void add_updates(int32_t id, int64_t kept, int64_t count) = 0;
  // Copies an update over another. Precondition: there is room for both.
  virtual void copy_update(int32_t id, int64_t from, int64_t to) = 0;
  // Copies a state with its first `updates` updates over another, which has room for them.
  virtual void copy(int32_t from, int64_t updates, int32_t to) = 0;
  // Makes `count` updates NaN.
  virtual void poison_updates(int32_t id, int64_t first, int64_t count) = 0;
  // Copies a state, [layer_count, size], and then its first `updates` updates, [updates, layer_count,
  // update_size]: out of the storage, and into it, which has room for them.
  virtual void save(int32_t id, int64_t updates, float* to) = 0;
  virtual void load(int32_t id, int64_t updates, const float* from) = 0;
};

// States in this machine's memory, as HostBackend reads them. Not thread-safe, except that workers may write
// different numbers.
class HostStates final : public StateStorage {
 public:
  explicit HostStates(const StateShape& shape) : shape_(shape) {}

  void add() override;
  void clear(int32_t id) override;
  void add_updates(int32_t id, int64_t kept, int64_t count) override;
  void copy_update(int32_t id, int64_t from, int64_t to) override;
  void copy(int32_t from, int64_t updates, int32_t to) override;
  void poison_updates(int32_t id, int64_t first, int64_t count) override;
  void save(int32_t id, int64_t updates, float* to) override;
  void load(int32_t id, int64_t updates, const float* from) override;

  // [size]
  float* state(int32_t id, int64_t layer) { return slot(id).states.data() + layer * shape_.size; }
  // [update_size]. Precondition: there is room for it.
  float* update(int32_t id, int64_t index, int64_t layer) {
    return slot(id).updates.data() + index * numbers_of_update() + layer * shape_.update_size;
  }

 private:
  struct Slot {
    std::vector<float> states;   // [layer_count, size]
    std::vector<float> updates;  // [index, layer_count, update_size]
  };
  Slot& slot(int32_t id) { return slots_[static_cast<size_t>(id)]; }
  int64_t numbers_of_update() const { return shape_.layer_count * shape_.update_size; }

  StateShape shape_;
  std::deque<Slot> slots_;
};

}  // namespace outrider
