// SPDX-License-Identifier: Apache-2.0
#include "kv/device_pages.h"

#include <algorithm>

namespace outrider {

DevicePages::DevicePages(Device& device, const KvShape& shape)
    : device_(device),
      shape_(shape),
      memory_(device, std::max<int64_t>(static_cast<int64_t>(storage_bytes(shape)), 1)),
      states_(device, shape.states) {
  device_.fill(memory_.address(), std::byte{0}, memory_.bytes());
}

DeviceAddress DevicePages::place(const KvRow& row) const {
  const int64_t begin = begin_of(shape_, row.layer, row.part) + row.slot * shape_.row_bytes(row.layer);
  return memory_.address() + static_cast<DeviceAddress>(begin);
}

void DevicePages::move(const KvMove& move) {
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    for (const KvPart part : {KvPart::kKeys, KvPart::kValues}) {  // one place twice where values are keys
      device_.copy(place({layer, part, move.from}), place({layer, part, move.to}),
                   move.count * shape_.row_bytes(layer));
    }
  }
}

void DevicePages::poison(int64_t first_slot, int64_t count) {
  const std::vector<std::byte> row = row_of_nan(shape_);
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    std::vector<std::byte> rows;
    for (int64_t i = 0; i < count; ++i)
      rows.insert(rows.end(), row.begin(), row.begin() + shape_.row_bytes(layer));
    for (const KvPart part : {KvPart::kKeys, KvPart::kValues})
      device_.upload(rows, place({layer, part, first_slot}));
  }
}

void DevicePages::clear(int64_t first_slot, int64_t count) {
  for (int64_t layer = 0; layer < shape_.layer_count; ++layer) {
    for (const KvPart part : {KvPart::kKeys, KvPart::kValues})
      device_.fill(place({layer, part, first_slot}), std::byte{0}, count * shape_.row_bytes(layer));
  }
}

void DevicePages::read(const KvRow& row, float* out, int64_t stride) const {
  std::vector<std::byte> stored(static_cast<size_t>(shape_.row_bytes(row.layer)));
  device_.download(place(row), stored);
  read_heads(shape_.type, shape_.heads(row.layer), stored.data(), out, stride);
}

void DevicePages::save(int64_t first_slot, int64_t count, std::byte* to) const {
  for_each_part(shape_, [&](int64_t begin, int64_t row_bytes) {
    const auto bytes = static_cast<size_t>(count * row_bytes);
    device_.download(memory_.address() + static_cast<DeviceAddress>(begin + first_slot * row_bytes),
                     std::span(to, bytes));
    to += bytes;
  });
}

void DevicePages::load(int64_t first_slot, int64_t count, const std::byte* from) {
  for_each_part(shape_, [&](int64_t begin, int64_t row_bytes) {
    const auto bytes = static_cast<size_t>(count * row_bytes);
    device_.upload(std::span(from, bytes),
                   memory_.address() + static_cast<DeviceAddress>(begin + first_slot * row_bytes));
    from += bytes;
  });
}

}  // namespace outrider
