// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/blocks/block.h"
#include "models/blocks/device_state_lists.h"
#include "models/blocks/state_plan.h"

namespace outrider {

// A mixer that keeps a state for each sequence. A projection of every row goes into the state, and a
// projection of what the row reads from the state comes out.
class RecurrentBlock : public Block {
 public:
  // The rows of a pass on this machine.
  struct Rows {
    float* projected = nullptr;  // [rows, projections().input.n], changed in place
    float* y = nullptr;          // [rows, projections().output.k]
    int64_t count = 0;
  };
  // y = what every row reads from the states after its own entry. Applies committed updates to the states,
  // and the updates of chains.
  virtual void recur(Host& host, const StatePlan& plan, const Rows& rows,
                     const LayerStates& states) const = 0;
  virtual void recur(DeviceOps& device, const DeviceLayerStates& states,
                     const DeviceStateRows& rows) const = 0;
  virtual std::string_view step_name() const = 0;

  std::string_view undivided() const override { return "recurrent layers"; }
  std::vector<const Projection*> adaptable() const override {
    return {&projections().input, &projections().output};
  }
  std::vector<int64_t> scratch() const override;
  void run(BlockPass& pass, const BlockRows& rows) const override;

 protected:
  struct Projections {
    const Projection& input;
    const Projection& output;
  };
  virtual Projections projections() const = 0;
};

}  // namespace outrider
