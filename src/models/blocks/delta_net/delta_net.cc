// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/delta_net/delta_net.h"

#include "models/blocks/delta_net/delta_ops.h"
#include "models/blocks/delta_net/device_delta.h"
#include "models/blocks/recurrent_block.h"

namespace outrider {
namespace {

class DeltaNet final : public RecurrentBlock {
 public:
  explicit DeltaNet(const BlockSite& site)
      : traits_(site.config.of_kinds.of<DeltaTraits>()), epsilon_(site.config.norm.epsilon) {}

  Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) override {
    return load_delta_net(loader, config, place, weights_);
  }
  void list(WeightList& weights) const override {
    for (const Projection* projection : {&weights_.input, &weights_.output})
      weights.projections.push_back(projection);
    for (const auto* numbers : {&weights_.taps, &weights_.time_bias, &weights_.decay, &weights_.norm})
      weights.numbers.push_back(numbers);
  }
  BlockCache cache() const override {
    return {.state_size = traits_.state_size(), .update_size = traits_.update_size()};
  }
  void recur(Host& host, const StatePlan& plan, const Rows& rows, const LayerStates& states) const override {
    host.shared<DeltaOps>(traits_, epsilon_, host.ops())
        .run(weights_, plan, {rows.projected, rows.y}, states);
  }
  void recur(DeviceOps& device, const DeviceLayerStates& states, const DeviceStateRows& rows) const override {
    device.shared<DeviceDelta>(traits_, epsilon_, device).run(weights_, states, rows);
  }
  std::string_view step_name() const override { return "delta net"; }

 private:
  Projections projections() const override { return {weights_.input, weights_.output}; }

  DeltaTraits traits_;
  float epsilon_;  // of norms
  DeltaWeights weights_;
};

}  // namespace

std::unique_ptr<Block> make_delta_net(const BlockSite& site) { return std::make_unique<DeltaNet>(site); }

}  // namespace outrider
