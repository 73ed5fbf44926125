// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "device/device.h"

namespace outrider {

// Bytes on their way between this rank's device and another rank's.
struct DeviceTransfer {
  DeviceAddress at = 0;  // on this device
  int64_t bytes = 0;
  int rank = 0;  // the other one
  bool is_receive = false;
};

// The ways between the device of this rank and the devices of other ranks. There are no sums: bytes move as
// they are. The device outlives the links, and the links outlive lists that name them.
class DeviceLinks {
 public:
  virtual ~DeviceLinks() = default;

  // Sends and receives that take place together, in the order of the device's calls. Transfers from one rank
  // to another have the order in which both name them, and receives have the bytes of their sends.
  virtual void exchange(std::span<const DeviceTransfer> transfers) = 0;
  // Why exchanges have failed, so that numbers on the device may be anything; empty: none has.
  virtual std::string failure() const { return {}; }
};

}  // namespace outrider
