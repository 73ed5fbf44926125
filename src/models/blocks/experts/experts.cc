// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/experts/experts.h"

#include <utility>

#include "models/blocks/dense_mlp/dense_mlp.h"
#include "models/blocks/experts/device_experts.h"
#include "models/blocks/experts/expert_ops.h"

namespace outrider {
namespace {

class Experts final : public Block {
 public:
  Experts(const BlockSite& site, std::unique_ptr<Block> beside)
      : hidden_size_(site.config.hidden_size),
        layer_(site.layer),
        traits_(site.config.experts),
        mlp_(site.config.mlp),
        beside_(std::move(beside)) {}

  Status load(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place) override {
    if (beside_) OUTRIDER_RETURN_IF_ERROR(beside_->load(loader, config, place));
    return load_experts(loader, config, place, weights_);
  }
  void list(WeightList& weights) const override {
    if (beside_) beside_->list(weights);
    weights_.list(weights);
  }
  std::vector<const Projection*> adaptable() const override {
    return beside_ ? beside_->adaptable() : std::vector<const Projection*>();
  }
  std::vector<int64_t> scratch() const override;
  void reserve(Host& host, int64_t rows) const override;
  std::vector<size_t> part_matrices() const override;
  int64_t used_parts() const override { return traits_.used; }
  int64_t part_bytes() const override { return weights_.experts.empty() ? 0 : weights_.bytes_of_expert(); }
  void run(BlockPass& pass, const BlockRows& rows) const override;

  const ExpertWeights& weights() const { return weights_; }
  int64_t layer() const { return layer_; }
  int64_t hidden_size() const { return hidden_size_; }
  DeviceExperts& ops(DeviceOps& device) const {
    return device.shared<DeviceExperts>(traits_, mlp_, hidden_size_, device);
  }
  ExpertOps& ops(Host& host) const { return host.shared<ExpertOps>(traits_, mlp_, hidden_size_, host.ops()); }

 private:
  static constexpr size_t kFirstScratch = 2;  // the dense MLP has the buffers before

  void run_beside(BlockPass& pass, const BlockRows& rows) const;

  int64_t hidden_size_;
  int64_t layer_;
  ExpertTraits traits_;
  MlpTraits mlp_;
  std::unique_ptr<Block> beside_;
  ExpertWeights weights_;
};

// y = the experts of each row, weighted and added.
struct ExpertStep final : BlockStep {
  explicit ExpertStep(const Experts& block) : block(block) {}

  std::string_view name() const override { return "experts"; }
  StepNames names() override {
    const int64_t count = rows * block.hidden_size();
    return {.weights = &block.weights().experts.front().gate_up,
            .rows = {{&router, count}, {&x, count}, {&y, count, RowUse::kWrite}}};
  }
  void run(Host& host) override {
    const Experts& own = host.own(block);
    ExpertOps& ops = own.ops(host);
    ops.run(own.weights(), {.router = host.at(router), .x = host.at(x)}, host.at(y), rows,
            {host.expert_stream(), own.layer()});
    chosen = ops.chosen();
  }
  void run(DeviceOps& device) override {
    block.ops(device).run(block.weights(), {.router = router, .x = x, .y = y, .count = rows});
  }

  const Experts& block;
  FloatAddress router, x;  // [rows, hidden_size], of the router and of the experts
  FloatAddress y;
  int64_t rows = 0;
  int64_t chosen = 0;  // experts that some row chose; 0 where a device does not tell
};

std::vector<int64_t> Experts::scratch() const {
  std::vector<int64_t> sizes = beside_ ? beside_->scratch() : std::vector<int64_t>();
  sizes.resize(kFirstScratch);
  sizes.insert(sizes.end(), {hidden_size_, 1, hidden_size_, hidden_size_});
  return sizes;
}

void Experts::reserve(Host& host, int64_t rows) const {
  if (!weights_.experts.empty()) ops(host).reserve(weights_, rows);
}

std::vector<size_t> Experts::part_matrices() const {
  std::vector<size_t> counts;
  for (const MlpWeights& expert : weights_.experts)
    counts.push_back(expert.gate_up.parts.size() + expert.down.parts.size());
  return counts;
}

// The dense MLP, gated where it has a gate.
void Experts::run_beside(BlockPass& pass, const BlockRows& rows) const {
  beside_->run(pass, rows);
  if (weights_.dense_gate.n == 0) return;
  const FloatAddress gates = pass.scratch(kFirstScratch + 1);
  pass.backend().project(weights_.dense_gate, rows.input, gates, pass.rows());
  pass.backend().gate_rows(gates, rows.output, pass.rows(), hidden_size_);
}

void Experts::run(BlockPass& pass, const BlockRows& rows) const {
  LayerBackend& backend = pass.backend();
  const FloatAddress dense = pass.scratch(kFirstScratch);
  if (beside_) run_beside(pass, {.input = rows.input, .output = dense, .residual = rows.residual});
  ExpertStep step(*this);
  step.router = step.x = rows.input;
  step.y = rows.output;
  step.rows = pass.rows();
  if (!weights_.input_norm.empty()) {
    step.router = pass.scratch(kFirstScratch + 2);
    step.x = pass.scratch(kFirstScratch + 3);
    backend.normalize(rows.residual, weights_.router_norm, step.router, pass.rows());
    backend.normalize(rows.residual, weights_.input_norm, step.x, pass.rows());
  }
  backend.run(step);
  pass.set_chosen_parts(step.chosen);
  if (!beside_) return;
  if (!weights_.output_norm.empty()) {
    backend.normalize(rows.output, weights_.output_norm, rows.output, pass.rows());
    backend.normalize(dense, weights_.dense_output_norm, dense, pass.rows());
  }
  backend.add(dense, rows.output, pass.rows() * hidden_size_);
}

}  // namespace

std::unique_ptr<Block> make_experts(const BlockSite& site) {
  return std::make_unique<Experts>(site, nullptr);
}

std::unique_ptr<Block> make_experts_and_dense(const BlockSite& site) {
  return std::make_unique<Experts>(site, make_dense_mlp(site));
}

}  // namespace outrider
