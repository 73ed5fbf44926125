// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/dense_mlp/dense_mlp.h"

#include "models/blocks/dense_mlp/mlp_weights.h"

namespace outrider {
namespace {

class DenseMlp final : public Block {
 public:
  explicit DenseMlp(const BlockSite& site) : traits_(site.config.mlp) {}

  Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) override {
    const int64_t ffn_size = config.sizes_of(place.index).ffn_size;
    return load_mlp(loader, config, {place.prefix + "mlp.", "", ffn_size, config.mlp.bias}, weights_);
  }
  void list(WeightList& weights) const override { weights_.list(weights); }
  std::vector<const Projection*> adaptable() const override { return {&weights_.gate_up, &weights_.down}; }
  std::vector<int64_t> scratch() const override { return {weights_.gate_up.n, weights_.down.k}; }
  void run(BlockPass& pass, const BlockRows& rows) const override;

 private:
  MlpTraits traits_;
  MlpWeights weights_;
};

void DenseMlp::run(BlockPass& pass, const BlockRows& rows) const {
  const FloatAddress gate_up = pass.scratch(0), gated = pass.scratch(1);
  pass.project_and_activate(weights_.gate_up, rows.input,
                            {.x = gate_up,
                             .y = gated,
                             .rows = pass.rows(),
                             .dim = weights_.gate_up.n / (traits_.is_gated ? 2 : 1),
                             .activation = traits_.activation,
                             .is_gated = traits_.is_gated});
  pass.project(weights_.down, gated, rows.output);
}

}  // namespace

std::unique_ptr<Block> make_dense_mlp(const BlockSite& site) { return std::make_unique<DenseMlp>(site); }

}  // namespace outrider
