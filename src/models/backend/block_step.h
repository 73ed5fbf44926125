// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace outrider {

class DeviceOps;
class Host;

// A step that only one kind of block has, so that LayerBackend has no operation for it. Like an operation, it
// names rows, weights and states. It has a version for each kind of machine.
class BlockStep {
 public:
  virtual ~BlockStep() = default;
  virtual std::string_view name() const = 0;  // in profiles
  virtual void run(Host& host) = 0;
  virtual void run(DeviceOps& device) = 0;
};

}  // namespace outrider
