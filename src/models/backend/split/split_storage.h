// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kv/device_pages.h"
#include "kv/kv_cache.h"

namespace outrider {

// The first layers with entries, and with states, that keep them on this machine.
struct HostCacheLayers {
  int64_t entries = 0;
  int64_t states = 0;
};

// States of which the first layers lie on this machine, and the others on a device.
class SplitStates final : public StateStorage {
 public:
  // All must outlive it. shape: of all layers
  SplitStates(const StateShape& shape, int64_t host_layers, HostStates& host, DeviceStates& device)
      : shape_(shape), host_layers_(host_layers), host_(host), device_(device) {}

  HostStates& host() { return host_; }
  DeviceStates& device() { return device_; }
  bool is_on_host(int64_t layer) const { return layer < host_layers_; }

  void add() override;
  void clear(int32_t id) override;
  void add_updates(int32_t id, int64_t kept, int64_t count) override;
  void copy_update(int32_t id, int64_t from, int64_t to) override;
  void copy(int32_t from, int64_t updates, int32_t to) override;
  void poison_updates(int32_t id, int64_t first, int64_t count) override;
  void save(int32_t id, int64_t updates, float* to) override;
  void load(int32_t id, int64_t updates, const float* from) override;

 private:
  // Some layers, in one storage.
  struct Part {
    StateStorage& storage;
    int64_t first, count;
  };
  std::vector<Part> parts() const {
    return {{host_, 0, host_layers_}, {device_, host_layers_, shape_.layer_count - host_layers_}};
  }
  // Calls take(numbers of the part, numbers of all layers, count) for the state and for each update.
  template <typename Take>
  void for_each_piece(const Part& part, int64_t updates, Take&& take) const;
  std::vector<float> room_for(const Part& part, int64_t updates) const {
    return std::vector<float>(static_cast<size_t>(part.count * (shape_.size + updates * shape_.update_size)));
  }

  StateShape shape_;
  int64_t host_layers_;
  HostStates& host_;
  DeviceStates& device_;
};

// Entries and states of which the first layers lie on this machine, and the others on a device. Slots and
// layers have one number at both.
class SplitPages final : public KvStorage {
 public:
  // Throws std::bad_alloc when the entries do not fit there.
  SplitPages(Device& device, const KvShape& shape, const HostCacheLayers& on_host);

  // The caches that operations see. They have the slots, and no sequences.
  KvCache& host() { return host_; }
  KvCache& device() { return device_; }
  bool is_on_host(int64_t layer) const { return layer < on_host_.entries; }

  void move(const KvMove& move) override;
  void poison(int64_t first_slot, int64_t count) override;
  void clear(int64_t first_slot, int64_t count) override;
  void read(const KvRow& row, float* out, int64_t stride) const override;
  void save(int64_t first_slot, int64_t count, std::byte* to) const override;
  void load(int64_t first_slot, int64_t count, const std::byte* from) override;
  SplitStates& states() override { return states_; }

 private:
  const KvStorage& of(int64_t layer) const { return is_on_host(layer) ? host_.storage() : device_.storage(); }
  // The bytes of `count` slots in all layers of this machine.
  int64_t host_bytes(int64_t count) const;

  KvShape shape_;
  HostCacheLayers on_host_;
  KvCache host_, device_;
  SplitStates states_;
};

}  // namespace outrider
