// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "models/backend/device/device_draft.h"
#include "models/backend/device/launcher.h"
#include "models/backend/device/pass_rows.h"
#include "models/backend/float_address.h"

namespace outrider {

// The target's states of the tokens that sequences get in a run of a device, by their places. The state of
// the token before the first pending one is there from the beginning.
class PlaceStates {
 public:
  // size: numbers of a state. Throws std::bad_alloc.
  PlaceStates(Device& device, int64_t size, const DeviceDraft::Shape& shape);

  // A run begins in which sequence `index` has `length` tokens, of which the last is pending.
  void start(int64_t index, int64_t length, std::span<const float> state);
  // For rows without a lag, in pages of one entry.
  DevicePassRows::Pages pages(int64_t index) const;
  // Records, for the slots of recorded rows, that features[rows, size] are kept, or brought to out[rows,
  // size].
  void record_keep(Launcher& launcher, simt::List<int> slots, FloatAddress features, int64_t rows);
  void record_gather(Launcher& launcher, simt::List<int> slots, int64_t rows, FloatAddress out);
  // The state of the token before the last one of a text with so many tokens.
  std::vector<float> state_before(int64_t index, int64_t length) const;

 private:
  int64_t slot(int64_t index, int64_t place) const;
  DeviceAddress address(int64_t slot) const;

  Device& device_;
  int64_t size_, row_size_;     // of a state, and in whole units
  int64_t most_;                // states of a sequence
  std::vector<int64_t> first_;  // by sequence: the place of its first state
  int64_t max_length_;          // tokens of a sequence
  std::vector<int32_t> slots_;  // 0, 1, ...
  DeviceBuffer states_;         // [sequences, most_, row_size_]
};

}  // namespace outrider
