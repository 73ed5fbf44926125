// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/backend/float_address.h"

namespace outrider {

class DeviceOps;
class Host;
class StateStorage;
struct Projection;

enum class RowUse : uint8_t {
  kRead,
  kWrite,   // every number becomes another
  kChange,  // some numbers become others
};

// The names in the members of a step. A backend of several memories puts other places there.
struct StepNames {
  struct Rows {
    FloatAddress* at = nullptr;
    int64_t count = 0;
    RowUse use = RowUse::kRead;
  };
  const Projection* weights = nullptr;  // among those that it reads
  std::vector<Rows> rows = {};
  StateStorage** states = nullptr;  // null: it has none
};

// A step that only one kind of block has, so that LayerBackend has no operation for it. Like an operation, it
// names rows, weights and states. It has a version for each kind of machine.
class BlockStep {
 public:
  virtual ~BlockStep() = default;
  virtual std::string_view name() const = 0;  // in profiles
  virtual StepNames names() = 0;
  virtual void run(Host& host) = 0;
  virtual void run(DeviceOps& device) = 0;
};

}  // namespace outrider
