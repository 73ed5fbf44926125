// SPDX-License-Identifier: Apache-2.0
#include "kv/device_states.h"

#include <algorithm>
#include <utility>

namespace outrider {
namespace {

constexpr std::byte kBytesOfNan{0xFF};

}  // namespace

DeviceStates::DeviceStates(Device& device, const StateShape& shape)
    : device_(device), shape_(shape), states_(device), updates_(device) {
  states_.reserve(shape.sequence_count * shape.bytes_per_sequence());
}

void DeviceStates::grow(DeviceBuffer& memory, int64_t used, int64_t bytes) {
  if (bytes <= memory.bytes()) return;
  DeviceBuffer larger(device_, std::max(bytes, 2 * memory.bytes()));
  device_.copy(memory.address(), larger.address(), used);
  memory = std::move(larger);
}

void DeviceStates::add() {
  const int64_t bytes = shape_.bytes_per_sequence(), used = std::ssize(ranges_) * bytes;
  grow(states_, used, used + bytes);
  ranges_.emplace_back();
  clear(static_cast<int32_t>(std::ssize(ranges_) - 1));
}

void DeviceStates::clear(int32_t id) { device_.fill(state(id), std::byte{0}, shape_.bytes_per_sequence()); }

void DeviceStates::add_updates(int32_t id, int64_t kept, int64_t count) {
  RowRange& range = ranges_[static_cast<size_t>(id)];
  if (kept + count > range.room) {
    const RowRange larger{used_rows_, std::max(kept + count, 2 * range.room)};
    grow(updates_, used_rows_ * update_bytes(), (larger.begin + larger.room) * update_bytes());
    device_.copy(row(range.begin), row(larger.begin), kept * update_bytes());
    used_rows_ += larger.room;
    range = larger;
  }
  poison_updates(id, kept, count);
}

void DeviceStates::copy_update(int32_t id, int64_t from, int64_t to) {
  device_.copy(update(id, from), update(id, to), update_bytes());
}

void DeviceStates::copy(int32_t from, int64_t updates, int32_t to) {
  device_.copy(state(from), state(to), shape_.bytes_per_sequence());
  device_.copy(update(from, 0), update(to, 0), updates * update_bytes());
}

void DeviceStates::poison_updates(int32_t id, int64_t first, int64_t count) {
  device_.fill(update(id, first), kBytesOfNan, count * update_bytes());
}

void DeviceStates::save(int32_t id, int64_t updates, float* to) {
  const int64_t numbers = shape_.layer_count * shape_.size;
  device_.download(state(id), std::as_writable_bytes(std::span(to, static_cast<size_t>(numbers))));
  const int64_t of_updates = updates * shape_.layer_count * shape_.update_size;
  device_.download(update(id, 0),
                   std::as_writable_bytes(std::span(to + numbers, static_cast<size_t>(of_updates))));
}

void DeviceStates::load(int32_t id, int64_t updates, const float* from) {
  const int64_t numbers = shape_.layer_count * shape_.size;
  device_.upload(std::as_bytes(std::span(from, static_cast<size_t>(numbers))), state(id));
  const int64_t of_updates = updates * shape_.layer_count * shape_.update_size;
  device_.upload(std::as_bytes(std::span(from + numbers, static_cast<size_t>(of_updates))), update(id, 0));
}

}  // namespace outrider
