// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/latent_attention/latent_attention.h"

#include <utility>

#include "models/blocks/latent_attention/device_latent.h"
#include "models/blocks/latent_attention/latent_ops.h"

namespace outrider {
namespace {

class LatentAttention final : public Block {
 public:
  explicit LatentAttention(const BlockSite& site)
      : traits_(site.config.of_kinds.of<LatentTraits>()),
        heads_(site.config.head_count),
        shape_(AttentionShape::of(site.config, site.layer)),
        rope_(site.config.traits_of(site.layer).rope) {
    shape_.slopes = {};
    shape_.values_are_keys = true;
  }

  Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) override {
    return load_latent_attention(loader, config, place, weights_);
  }
  void list(WeightList& weights) const override { weights_.list(weights); }
  std::vector<const Projection*> adaptable() const override { return {&weights_.output}; }
  BlockCache cache() const override {
    return {.reads_entries = true,
            .window = shape_.window != 0 ? shape_.window : shape_.chunk,
            .heads = KvHeads{shape_.kv_head_count, shape_.head_dim},
            .values_are_keys = true};
  }
  std::vector<int64_t> scratch() const override {
    return {shape_.qkv_size(), shape_.q_size(), weights_.output.k};
  }
  void reserve(Host& host, int64_t rows) const override { ops(host).reserve(weights_, rows); }
  std::string_view undivided() const override { return "latent attention"; }
  void run(BlockPass& pass, const BlockRows& rows) const override;

  const LatentWeights& weights() const { return weights_; }
  // Numbers of a row before and after each step.
  std::pair<int64_t, int64_t> query_sizes() const { return {weights_.entry.k, shape_.qkv_size()}; }
  std::pair<int64_t, int64_t> value_sizes() const { return {shape_.q_size(), weights_.output.k}; }
  DeviceLatent& ops(DeviceOps& device) const { return device.shared<DeviceLatent>(traits_, heads_, device); }
  LatentOps& ops(Host& host) const { return host.shared<LatentOps>(traits_, heads_, host.ops()); }

 private:
  LatentTraits traits_;
  int64_t heads_;
  AttentionShape shape_;
  int rope_;  // see LayerTraits
  LatentWeights weights_;
};

// Queries and the entry of every row, from the input of attention.
struct LatentQueries final : BlockStep {
  LatentQueries(const LatentAttention& block, FloatAddress input, FloatAddress qkv, int64_t rows)
      : block(block), input(input), qkv(qkv), rows(rows) {}

  std::string_view name() const override { return "queries of latent attention"; }
  StepNames names() override {
    const auto [hidden_size, qkv_size] = block.query_sizes();
    return {.weights = &block.weights().output,
            .rows = {{&input, rows * hidden_size}, {&qkv, rows * qkv_size, RowUse::kWrite}}};
  }
  void run(Host& host) override {
    const LatentAttention& own = host.own(block);
    own.ops(host).make_queries(own.weights(), host.at(input), host.at(qkv), rows);
  }
  void run(DeviceOps& device) override { block.ops(device).make_queries(block.weights(), input, qkv, rows); }

  const LatentAttention& block;
  FloatAddress input, qkv;
  int64_t rows;
};

// The values of every head, from what it attended to.
struct LatentValues final : BlockStep {
  LatentValues(const LatentAttention& block, FloatAddress attended, FloatAddress y, int64_t rows)
      : block(block), attended(attended), y(y), rows(rows) {}

  std::string_view name() const override { return "values of latent attention"; }
  StepNames names() override {
    const auto [attended_size, value_size] = block.value_sizes();
    return {.weights = &block.weights().output,
            .rows = {{&attended, rows * attended_size}, {&y, rows * value_size, RowUse::kWrite}}};
  }
  void run(Host& host) override {
    const LatentAttention& own = host.own(block);
    own.ops(host).read_values(own.weights(), host.at(attended), host.at(y), rows);
  }
  void run(DeviceOps& device) override { block.ops(device).read_values(block.weights(), attended, y, rows); }

  const LatentAttention& block;
  FloatAddress attended, y;
  int64_t rows;
};

void LatentAttention::run(BlockPass& pass, const BlockRows& rows) const {
  LayerBackend& backend = pass.backend();
  const FloatAddress qkv = pass.scratch(0), attended = pass.scratch(1), values = pass.scratch(2);
  const LayerBackend::Attention attention{
      .shape = &shape_, .cache = &pass.cache(), .layer = rows.cache_layer, .qkv = qkv};
  LatentQueries queries(*this, rows.input, qkv, pass.rows());
  backend.run(queries);
  backend.rotate_and_store(attention, pass.places(rope_));
  pass.keep_wanted({{qkv, shape_.qkv_size()}});
  if (pass.rows() == 0) return;
  backend.attend(attention, pass.attention_rows(), attended);
  LatentValues reading(*this, attended, values, pass.rows());
  backend.run(reading);
  pass.project(weights_.output, values, rows.output);
}

}  // namespace

std::unique_ptr<Block> make_latent_attention(const BlockSite& site) {
  return std::make_unique<LatentAttention>(site);
}

}  // namespace outrider
