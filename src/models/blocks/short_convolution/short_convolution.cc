// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/short_convolution/short_convolution.h"

#include "models/blocks/recurrent_block.h"
#include "models/blocks/short_convolution/convolution_ops.h"
#include "models/blocks/short_convolution/device_convolution.h"

namespace outrider {
namespace {

class ShortConvolution final : public RecurrentBlock {
 public:
  explicit ShortConvolution(const BlockSite& site)
      : cache_{
            .state_size = (site.config.of_kinds.of<ConvolutionTraits>().taps - 1) * site.config.hidden_size,
            .update_size = site.config.hidden_size} {}

  Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) override {
    return load_convolution(loader, config, place, weights_);
  }
  void list(WeightList& weights) const override {
    for (const Projection* projection : {&weights_.input, &weights_.output})
      weights.projections.push_back(projection);
    for (const auto* numbers : {&weights_.taps, &weights_.bias}) weights.numbers.push_back(numbers);
  }
  BlockCache cache() const override { return cache_; }
  void recur(Host& host, const StatePlan& plan, const Rows& rows, const LayerStates& states) const override {
    convolve(host.ops(), weights_, plan, {rows.projected, rows.y, rows.count}, states);
  }
  void recur(DeviceOps& device, const DeviceLayerStates& states, const DeviceStateRows& rows) const override {
    convolve(device, weights_, states, rows);
  }
  std::string_view step_name() const override { return "short convolution"; }

 private:
  Projections projections() const override { return {weights_.input, weights_.output}; }

  BlockCache cache_;
  ConvolutionWeights weights_;
};

}  // namespace

std::unique_ptr<Block> make_short_convolution(const BlockSite& site) {
  return std::make_unique<ShortConvolution>(site);
}

}  // namespace outrider
