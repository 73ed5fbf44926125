// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// Orders to the device of the target.
struct DeviceOrders {
  int64_t launches = 0;  // of kernels, one by one
  int64_t lists = 0;     // recorded ones, which are one order each
  int64_t bytes_to = 0;  // the device, and from it
  int64_t bytes_from = 0;
  int64_t allocations = 0;
  double waited_ms = 0;  // in which this machine waited for the device, or emulated it

  DeviceOrders operator+(const DeviceOrders& other) const {
    return {launches + other.launches,       lists + other.lists,
            bytes_to + other.bytes_to,       bytes_from + other.bytes_from,
            allocations + other.allocations, waited_ms + other.waited_ms};
  }
  DeviceOrders operator-(const DeviceOrders& before) const {
    return {launches - before.launches,       lists - before.lists,
            bytes_to - before.bytes_to,       bytes_from - before.bytes_from,
            allocations - before.allocations, waited_ms - before.waited_ms};
  }
};

}  // namespace outrider
