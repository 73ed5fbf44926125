// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/choice/trees.h"
#include "kv/kv_cache.h"
#include "models/backend/device/launcher.h"

namespace outrider {

// Moves the entries of accepted nodes to the places of their tokens, within the steps of a device.
class EntryMoves {
 public:
  // The cache lies on the device, and outlives the object.
  EntryMoves(Device& device, const KvCache& cache);

  // rows: with the pages of the sequences.
  void record(Launcher& launcher, const simt::Trees& trees, const simt::TreeNodes& nodes,
              const simt::PassRows& rows) const;

 private:
  simt::Rows<uint16_t> numbers_;
  DeviceNumbers<uint64_t> begins_;
  DeviceNumbers<int> sizes_;
};

}  // namespace outrider
