// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "models/model.h"
#include "outrider/device_orders.h"

namespace outrider {

// Orders to the device of the target so far; nullopt: this machine computes.
inline std::optional<DeviceOrders> orders_to_device(const Model& target) {
  const std::optional<DeviceCounts> counts = target.device_counts();
  if (!counts) return std::nullopt;
  return DeviceOrders{.launches = counts->launches,
                      .lists = counts->lists,
                      .bytes_to = counts->uploaded_bytes,
                      .bytes_from = counts->downloaded_bytes,
                      .allocations = counts->allocations,
                      .waited_ms = counts->waited_ms};
}

}  // namespace outrider
