// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/device_links.h"
#include "models/sharding/shard.h"
#include "outrider/result.h"

namespace outrider {

struct NcclLibrary;
struct ProcessPlace;

// The way of a rank's device to the devices of the other ranks that share a model. At first numbers go
// through the memory of this machine.
class RankLinks {
 public:
  RankLinks(Device& device, const ModelPart& part);

  const ModelPart& part() const { return part_; }
  // Precondition: there are other ranks. Lists may name it when link() has returned.
  DeviceLinks& links() const { return *links_; }
  // Whether lists of the device may have exchanges, the same at all ranks.
  bool take_lists() const { return take_lists_; }

  // Links GPUs over NCCL where all ranks can, and lets lists have exchanges. All ranks call it together, and
  // the first one says what came of it. Throws RankFailure.
  void link();
  // For tests. place: of this rank's process; ranks of one process have no NCCL, because one of them may free
  // memory while the driver waits for another one's exchange.
  void link_over(const Result<NcclLibrary>& nccl, const ProcessPlace& place);
  // Throws RankFailure when exchanges have failed, so that nothing on the device counts.
  void check() const;

 private:
  Device& device_;
  ModelPart part_;
  std::unique_ptr<DeviceLinks> links_;  // null: there are no other ranks
  bool take_lists_;
};

}  // namespace outrider
