// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "device/device.h"
#include "kv/device_states.h"
#include "kv/kv_storage.h"

namespace outrider {

// Entries and states in the memory of a device, as its kernels read them: laid out as HostPages.
class DevicePages final : public KvStorage {
 public:
  // Throws std::bad_alloc when the entries do not fit there.
  DevicePages(Device& device, const KvShape& shape);

  void move(const KvMove& move) override;
  void poison(int64_t first_slot, int64_t count) override;
  void clear(int64_t first_slot, int64_t count) override;
  void read(const KvRow& row, float* out, int64_t stride) const override;
  void save(int64_t first_slot, int64_t count, std::byte* to) const override;
  void load(int64_t first_slot, int64_t count, const std::byte* from) override;
  DeviceStates& states() override { return states_; }

  // The memory of all parts, see for_each_part().
  const DeviceBuffer& memory() const { return memory_; }
  // [page_count * page_size, heads of the layer] head vectors
  DeviceAddress keys(int64_t layer) const { return place({.layer = layer}); }
  DeviceAddress values(int64_t layer) const { return place({.layer = layer, .part = KvPart::kValues}); }

 private:
  DeviceAddress place(const KvRow& row) const;

  Device& device_;
  KvShape shape_;
  DeviceBuffer memory_;
  DeviceStates states_;
};

}  // namespace outrider
