// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/blocks/delta_net/delta_ops.h"
#include "models/blocks/device_state_lists.h"

namespace outrider {

// DeltaOps on a device, with its bits.
class DeviceDelta {
 public:
  // `epsilon`: of the norm of outputs. `ops` must outlive it.
  DeviceDelta(const DeltaTraits& traits, float epsilon, DeviceOps& ops);

  void run(const DeltaWeights& net, const DeviceLayerStates& states, const DeviceStateRows& rows);

 private:
  // Queries and keys of length one, and values, of every node.
  void convolve(const DeltaWeights& net, const DeviceLayerStates& states, const DeviceStateRows& rows);
  void normalize_heads(FloatAddress heads, std::span<const float> scale, int64_t nodes);
  void make_rates(const DeltaWeights& net, const DeviceLayerStates& states, const DeviceStateRows& rows);
  void follow_nodes(const DeviceLayerStates& states, const DeviceStateRows& rows);
  // y = norm(y) * silu(gates)
  void gate(const DeltaWeights& net, const DeviceStateRows& rows);

  const DeltaTraits traits_;
  const float epsilon_;
  DeviceOps& ops_;
  std::vector<float> query_scale_, key_scale_;  // [key_dim]: norms of queries and keys as RMS norms
  DeviceBuffer convolved_;                      // [nodes, conv_size]
  DeviceBuffer rates_;                          // [nodes, 2, value_heads]
  DeviceBuffer slots_;                          // [slots, value_heads, key_dim * value_dim]
};

}  // namespace outrider
