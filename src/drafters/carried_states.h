// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "device_kernels/choice/tree_growth.h"
#include "models/backend/device/device_draft.h"
#include "models/backend/device/launcher.h"
#include "models/backend/float_address.h"

namespace outrider {

// The states of the entries that sequences get in a run of a device, for a network whose rows go on from the
// state of the entry before.
class CarriedStates {
 public:
  // size: numbers of a state; rows: of a first pass. Throws std::bad_alloc.
  CarriedStates(Launcher& launcher, int64_t size, int64_t rows, const DeviceDraft::Shape& shape);

  // A run begins. firsts: by sequence, the position of its pending token.
  void start(std::span<const int> firsts) { firsts_.write(firsts); }
  // The state of the entry before the first pending token's; the states of the entries after it follow.
  FloatAddress of_sequence(int64_t index) const;

  simt::CarriedRows view() const;
  // Some numbers of the states of a pass's rows, [rows, dim].
  struct Part {
    FloatAddress numbers;
    int64_t rows = 0;
    int64_t dim = 0;
    int64_t column = 0;  // numbers of a state before them
  };
  // Records that the rows' entries keep these numbers.
  void record_keep(const Part& part);
  // Records that the rows get the numbers of the entries before theirs.
  void record_bring(const Part& part);

 private:
  Launcher& launcher_;
  int64_t size_;
  int64_t most_;                 // states of a sequence
  DeviceNumbers<float> states_;  // [sequences, most_, size_]
  DeviceNumbers<int> before_, firsts_;
};

}  // namespace outrider
