// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "device_kernels/states/state_nodes.h"
#include "kv/device_states.h"
#include "models/backend/device/device_ops.h"
#include "models/backend/state_lists.h"
#include "models/blocks/state_plan.h"

namespace outrider {

// The rows of a pass on a device, as RecurrentBlock::Rows.
struct DeviceStateRows {
  FloatAddress projected;  // [count, width]
  FloatAddress y;
  int64_t count = 0;
  int64_t width = 0;
};

// The states and updates of one layer, and the nodes of a pass over it, as kernels find them.
struct DeviceLayerStates {
  simt::Rows<float> states, updates;  // from the layer's first one on
  int state_stride = 0, update_stride = 0;
  simt::StateNodes nodes = {};
  simt::StateSequences sequences = {};
  simt::List<int> order = {};
  simt::Rows<const int> kept_rows = {}, kept_updates = {};  // rows whose updates go to the storage, and where
  int node_count = 0, sequence_count = 0, slot_count = 0;
  bool applies = false;  // some updates become part of a state

  simt::NodeUpdates inputs(const DeviceStateRows& rows) const;
};

// The states of a device in one layer.
struct DeviceStatePlace {
  const StateStore& store;
  const DeviceStates& numbers;
  int64_t layer;  // of the store
};

// The lists of a StatePlan. The nodes of a sequence begin with the committed entries that its state does not
// hold yet, which pass like the nodes of a chain.
StateLists list_states(const StatePlan& plan, const DeviceStatePlace& place);

// These lists in the memory of a device.
class DeviceStateLists {
 public:
  explicit DeviceStateLists(Launcher& launcher)
      : nodes_(launcher),
        sequences_(launcher),
        order_(launcher),
        kept_rows_(launcher),
        kept_updates_(launcher) {}

  // Valid until the next call.
  DeviceLayerStates list(const StatePlan& plan, const DeviceStatePlace& place);

 private:
  UploadedList<int> nodes_, sequences_, order_, kept_rows_, kept_updates_;
};

// The states of a layer in a pass that is recorded. Precondition: the device records.
DeviceLayerStates recorded_layer_states(const DeviceOps& device, const DeviceStatePlace& place);

// Copies the updates of rows that the storage keeps, `size` numbers each.
void keep_updates(DeviceOps& device, const DeviceLayerStates& states, const DeviceStateRows& rows,
                  int64_t size);
// The inputs of a convolution in the states move on: [kept, dim], which are the first numbers of a state.
void push_inputs(DeviceOps& device, const DeviceLayerStates& states, const DeviceStateRows& rows,
                 int64_t kept, int64_t dim);

}  // namespace outrider
