// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "models/backend/attention_shape.h"
#include "models/backend/state_lists.h"
#include "models/forward_batch.h"

namespace outrider {

class DeviceStates;
struct LayerSubset;

// A pass whose operations a backend may have ready from a pass over other rows.
struct RepeatedPass {
  const ForwardBatch& batch;
  KvCache& cache;
  const LayerSubset& layers;
  bool keeps_features = false;
  std::span<const RowRotations> rotations;  // of the rows, by RoPE
  QueryFactors query_factors;
  // The rows in layers that keep states, which all hold the same entries; null: there are no such layers.
  std::function<StateLists(const DeviceStates&)> list_states;
  // Calls the operations of such a pass over any batch.
  std::function<void(const ForwardBatch&)> operations;
};

}  // namespace outrider
