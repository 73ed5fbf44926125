// SPDX-License-Identifier: Apache-2.0
#include "device/device_list.h"

#include <utility>

#include "base/check.h"

namespace outrider {

void DeviceList::launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
  if (shape.blocks == 0) return;
  const auto* bytes = static_cast<const std::byte*>(args);
  entries_.push_back(Launch{&kernel, {bytes, bytes + kernel.args_bytes}, shape});
}

void DeviceList::copy(DeviceAddress from, DeviceAddress to, int64_t bytes) {
  if (bytes > 0 && from != to) entries_.push_back(Copy{from, to, bytes});
}

void DeviceList::fill(DeviceAddress to, std::byte value, int64_t bytes) {
  if (bytes > 0) entries_.push_back(Fill{to, value, bytes});
}

void DeviceList::exchange(DeviceLinks& links, std::vector<DeviceTransfer> transfers) {
  if (!transfers.empty()) entries_.push_back(Exchange{&links, std::move(transfers)});
}

void DeviceList::repeat(DeviceAddress word, int limit, DeviceList body) {
  OUTRIDER_CHECK(word != 0 && word % sizeof(int32_t) == 0 && limit > 0);
  entries_.push_back(Loop{word, limit, std::make_shared<const DeviceList>(std::move(body))});
}

}  // namespace outrider
