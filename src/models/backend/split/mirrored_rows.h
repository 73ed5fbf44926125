// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "device/device.h"
#include "models/backend/block_step.h"
#include "tensor/buffer.h"

namespace outrider {

// Rows of f32 that have a place in the memory of a device, by which they are named, and one in the memory of
// this machine. A number is current at one place or at both, and is copied when it is wanted at the other.
class MirroredRows {
 public:
  explicit MirroredRows(Device& device) : device_(device) {}

  // `rows` is memory of the device, where its numbers are current.
  void add(FloatAddress rows, int64_t count);
  void remove(FloatAddress rows) { rows_.erase(rows.address()); }
  bool has(FloatAddress rows) const { return find(rows).rows != nullptr; }
  // Whether some of the numbers are current only on this machine.
  bool is_on_host(FloatAddress rows, int64_t count) const;

  // Makes the numbers current there, but for kWrite. After kWrite and kChange they are current nowhere else.
  // Rows that were not added are on the device.
  void use_on_device(FloatAddress rows, int64_t count, RowUse use);
  // Returns the place of the rows on this machine. Precondition: they were added.
  FloatAddress use_on_host(FloatAddress rows, int64_t count, RowUse use);

 private:
  enum class Current : uint8_t { kDevice, kHost, kBoth };
  struct Rows {
    int64_t count = 0;
    Buffer host = {};  // made when it is first wanted
    // By the first number of a run, which goes on until the next one.
    std::map<int64_t, Current> runs = {{0, Current::kDevice}};
  };
  struct Found {
    FloatAddress begin = {};
    Rows* rows = nullptr;  // null: the rows were not added
    int64_t first = 0;     // number among them
  };
  struct Run {
    int64_t begin = 0, end = 0;
  };

  Found find(FloatAddress rows) const;
  // The parts of [range.begin, range.end) that are current at that place alone, or at both.
  static std::vector<Run> runs_of(const Rows& rows, Run range, Current current);
  static void set(Rows& rows, Run range, Current current);

  Device& device_;
  mutable std::map<uintptr_t, Rows> rows_;  // by their place on the device
};

}  // namespace outrider
