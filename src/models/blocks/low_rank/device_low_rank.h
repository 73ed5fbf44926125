// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>

#include "models/backend/device/device_ops.h"
#include "models/blocks/low_rank/low_rank_ops.h"

namespace outrider {

// LowRankOps on a device, with its bits. Updates come to the device when rows first use them, and leave it
// after their adapter.
class DeviceLowRank {
 public:
  explicit DeviceLowRank(DeviceOps& ops);

  struct Product {
    const AdapterSet& adapters;
    const Projection& projection;
    std::span<const AdaptedRows> rows;
    FloatAddress x;  // [rows, k]
    FloatAddress y;  // [rows, n]
  };
  void run(const Product& product);

 private:
  struct Uploaded {
    std::weak_ptr<const PackedUpdates> updates;
    std::unique_ptr<DeviceWeights> weights;
  };
  DeviceWeights& weights_of(const std::shared_ptr<const PackedUpdates>& updates);
  void add(const Product& product, const AdaptedRows& rows, const ScaledAdapter& adapter);

  DeviceOps& ops_;
  std::map<const PackedUpdates*, Uploaded> uploaded_;
  DeviceBuffer inner_, inputs_, outputs_;  // A x, its columns of an expansion, and B (A x)
};

}  // namespace outrider
