// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/attention/attention.h"

#include "models/blocks/attention/attention_weights.h"

namespace outrider {
namespace {

class Attention final : public Block {
 public:
  explicit Attention(const BlockSite& site)
      : shape_(AttentionShape::of(site.config, site.layer, site.shard)),
        slopes_(shape_.slopes.begin(), shape_.slopes.end()),
        rope_(site.config.traits_of(site.layer).rope),
        limit_(static_cast<float>(site.config.qkv_limit)) {
    shape_.slopes = slopes_;
    if (site.config.gates_attention) undivided_ = "gates of attention";
    if (site.config.qk_norm == QkNorm::kWhole && !site.shard.is_whole())
      undivided_ = "norms over the queries of all heads";
    if (!shape_.stores) undivided_ = "layers that share keys and values";
  }

  Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) override {
    return load_attention(loader, config, place, weights_);
  }
  void list(WeightList& weights) const override { weights_.list(weights); }
  std::vector<const Projection*> adaptable() const override {
    return {&weights_.qkv, &weights_.output_gate, &weights_.attention_output};
  }
  BlockCache cache() const override {
    BlockCache cache{.reads_entries = true, .window = shape_.window != 0 ? shape_.window : shape_.chunk};
    if (shape_.stores) cache.heads = KvHeads{shape_.kv_head_count, shape_.head_dim};
    return cache;
  }
  std::vector<int64_t> scratch() const override {
    return {shape_.qkv_size(), shape_.q_size(), weights_.output_gate.n};
  }
  std::string_view undivided() const override { return undivided_; }
  void run(BlockPass& pass, const BlockRows& rows) const override;

 private:
  AttentionShape shape_;
  std::vector<float> slopes_;
  int rope_;     // see LayerTraits
  float limit_;  // of queries, keys and values; 0: there is none
  std::string_view undivided_;
  AttentionWeights weights_;
};

void Attention::run(BlockPass& pass, const BlockRows& rows) const {
  LayerBackend& backend = pass.backend();
  const FloatAddress qkv = pass.scratch(0), attended = pass.scratch(1), gates = pass.scratch(2);
  const LayerBackend::Attention attention{.shape = &shape_,
                                          .q_norm = weights_.q_norm,
                                          .k_norm = weights_.k_norm,
                                          .v_norm = weights_.v_norm,
                                          .sinks = weights_.sinks,
                                          .cache = &pass.cache(),
                                          .layer = rows.cache_layer,
                                          .qkv = qkv};
  const bool is_gated = weights_.output_gate.n != 0;
  pass.project(weights_.qkv, rows.input, qkv);
  if (limit_ != 0) backend.clamp(limit_, qkv, pass.rows() * shape_.qkv_size());
  backend.rotate_and_store(attention, pass.places(rope_));
  if (is_gated) pass.project(weights_.output_gate, rows.input, gates);
  pass.keep_wanted({{qkv, shape_.qkv_size()}, {gates, weights_.output_gate.n}});
  if (pass.rows() == 0) return;
  backend.attend(attention, pass.attention_rows(), attended);
  if (is_gated) backend.gate(gates, attended, pass.rows() * shape_.q_size());
  pass.project(weights_.attention_output, attended, rows.output);
}

}  // namespace

std::unique_ptr<Block> make_attention(const BlockSite& site) { return std::make_unique<Attention>(site); }

}  // namespace outrider
