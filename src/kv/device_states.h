// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"
#include "kv/state_storage.h"

namespace outrider {

// States in the memory of a device, and their numbers as HostStates has them. All lie in one piece of memory,
// and so do all updates, so that a kernel finds them by number.
class DeviceStates final : public StateStorage {
 public:
  // Throws std::bad_alloc when the reserved states do not fit there, and so do functions that add more.
  DeviceStates(Device& device, const StateShape& shape);

  void add() override;
  void clear(int32_t id) override;
  void add_updates(int32_t id, int64_t kept, int64_t count) override;
  void copy_update(int32_t id, int64_t from, int64_t to) override;
  void copy(int32_t from, int64_t updates, int32_t to) override;
  void poison_updates(int32_t id, int64_t first, int64_t count) override;
  void save(int32_t id, int64_t updates, float* to) override;
  void load(int32_t id, int64_t updates, const float* from) override;

  const StateShape& shape() const { return shape_; }
  // [numbers of states, layer_count, size], and the number of floats
  DeviceAddress states() const { return states_.address(); }
  int64_t state_numbers() const { return states_.bytes() / static_cast<int64_t>(sizeof(float)); }
  // [rows of updates, layer_count, update_size]
  DeviceAddress updates() const { return updates_.address(); }
  int64_t update_numbers() const { return updates_.bytes() / static_cast<int64_t>(sizeof(float)); }
  // The row of an update.
  int64_t update_row(int32_t id, int64_t index) const {
    return ranges_[static_cast<size_t>(id)].begin + index;
  }

 private:
  // Rows of updates of a state. A range that has to grow leaves its rows behind, and at least doubles.
  struct RowRange {
    int64_t begin = 0;
    int64_t room = 0;
  };
  int64_t update_bytes() const {
    return shape_.layer_count * shape_.update_size * static_cast<int64_t>(sizeof(float));
  }
  DeviceAddress state(int32_t id) const {
    return states_.address() + static_cast<DeviceAddress>(id * shape_.bytes_per_sequence());
  }
  DeviceAddress row(int64_t row) const {
    return updates_.address() + static_cast<DeviceAddress>(row * update_bytes());
  }
  DeviceAddress update(int32_t id, int64_t index) const { return row(update_row(id, index)); }
  // Makes room for so many bytes and keeps the first `used` ones.
  void grow(DeviceBuffer& memory, int64_t used, int64_t bytes);

  Device& device_;
  StateShape shape_;
  DeviceBuffer states_, updates_;
  std::vector<RowRange> ranges_;  // by state
  int64_t used_rows_ = 0;
};

}  // namespace outrider
