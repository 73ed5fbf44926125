// SPDX-License-Identifier: Apache-2.0
#include "models/backend/split/split_storage.h"

#include <algorithm>
#include <memory>

namespace outrider {
namespace {

// The first layers.
KvShape host_shape(KvShape shape, const HostCacheLayers& on_host) {
  shape.layer_count = on_host.entries;
  if (!shape.layers.empty()) shape.layers.resize(static_cast<size_t>(on_host.entries));
  shape.states.layer_count = on_host.states;
  return shape;
}

// All layers, of which the first have no heads, and the states of the others.
KvShape device_shape(KvShape shape, const HostCacheLayers& on_host) {
  if (shape.layers.empty())
    shape.layers.assign(static_cast<size_t>(shape.layer_count), {shape.kv_head_count, shape.head_dim});
  for (int64_t layer = 0; layer < on_host.entries; ++layer)
    shape.layers[static_cast<size_t>(layer)].count = 0;
  shape.states.first_layer = on_host.states;
  shape.states.layer_count -= on_host.states;
  return shape;
}

KvShape without_states(KvShape shape) {
  shape.states = {};
  return shape;
}

}  // namespace

void SplitStates::add() {
  host_.add();
  device_.add();
}

void SplitStates::clear(int32_t id) {
  host_.clear(id);
  device_.clear(id);
}

void SplitStates::add_updates(int32_t id, int64_t kept, int64_t count) {
  host_.add_updates(id, kept, count);
  device_.add_updates(id, kept, count);
}

void SplitStates::copy_update(int32_t id, int64_t from, int64_t to) {
  host_.copy_update(id, from, to);
  device_.copy_update(id, from, to);
}

void SplitStates::copy(int32_t from, int64_t updates, int32_t to) {
  host_.copy(from, updates, to);
  device_.copy(from, updates, to);
}

void SplitStates::poison_updates(int32_t id, int64_t first, int64_t count) {
  host_.poison_updates(id, first, count);
  device_.poison_updates(id, first, count);
}

template <typename Take>
void SplitStates::for_each_piece(const Part& part, int64_t updates, Take&& take) const {
  const int64_t state = part.count * shape_.size, update = part.count * shape_.update_size;
  take(0, part.first * shape_.size, state);
  const int64_t of_all = shape_.layer_count * shape_.size + part.first * shape_.update_size;
  for (int64_t i = 0; i < updates; ++i)
    take(state + i * update, of_all + i * shape_.layer_count * shape_.update_size, update);
}

void SplitStates::save(int32_t id, int64_t updates, float* to) {
  for (const Part& part : parts()) {
    std::vector<float> own = room_for(part, updates);
    part.storage.save(id, updates, own.data());
    for_each_piece(part, updates, [&](int64_t of_part, int64_t of_all, int64_t count) {
      std::copy_n(own.data() + of_part, count, to + of_all);
    });
  }
}

void SplitStates::load(int32_t id, int64_t updates, const float* from) {
  for (const Part& part : parts()) {
    std::vector<float> own = room_for(part, updates);
    for_each_piece(part, updates, [&](int64_t of_part, int64_t of_all, int64_t count) {
      std::copy_n(from + of_all, count, own.data() + of_part);
    });
    part.storage.load(id, updates, own.data());
  }
}

SplitPages::SplitPages(Device& device, const KvShape& shape, const HostCacheLayers& on_host)
    : shape_(shape),
      on_host_(on_host),
      host_(without_states(host_shape(shape, on_host)), KvOptions(),
            std::make_unique<HostPages>(host_shape(shape, on_host))),
      device_(without_states(device_shape(shape, on_host)), KvOptions(),
              std::make_unique<DevicePages>(device, device_shape(shape, on_host))),
      states_(shape.states, on_host.states, host_.host_states(),
              dynamic_cast<DevicePages&>(device_.storage()).states()) {}

void SplitPages::move(const KvMove& move) {
  host_.repeat(move);
  device_.repeat(move);
}

void SplitPages::poison(int64_t first_slot, int64_t count) {
  host_.storage().poison(first_slot, count);
  device_.storage().poison(first_slot, count);
}

void SplitPages::clear(int64_t first_slot, int64_t count) {
  host_.storage().clear(first_slot, count);
  device_.storage().clear(first_slot, count);
}

void SplitPages::read(const KvRow& row, float* out, int64_t stride) const {
  of(row.layer).read(row, out, stride);
}

int64_t SplitPages::host_bytes(int64_t count) const { return count * shape_.bytes_before(on_host_.entries); }

void SplitPages::save(int64_t first_slot, int64_t count, std::byte* to) const {
  host_.storage().save(first_slot, count, to);
  device_.storage().save(first_slot, count, to + host_bytes(count));
}

void SplitPages::load(int64_t first_slot, int64_t count, const std::byte* from) {
  host_.storage().load(first_slot, count, from);
  device_.storage().load(first_slot, count, from + host_bytes(count));
}

}  // namespace outrider
