// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace outrider {

// The nodes of a pass in layers that keep states, as kernels of a device read them, see
// device_kernels/states/state_nodes.h.
struct StateLists {
  std::vector<int> nodes, sequences, order;
  std::vector<int> kept_rows, kept_updates;  // rows whose updates go to the storage, and where
  int slots = 0;                             // of scratch
  bool applies = false;                      // some updates become part of a state
};

}  // namespace outrider
