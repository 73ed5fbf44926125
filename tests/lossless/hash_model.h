// SPDX-License-Identifier: Apache-2.0
// A model of two layers without numerics. An entry of the first layer is (token, position), and an entry of
// the second is a hash of all entries of the first that its row saw, in order. The logits are a pure
// function of all entries of the second that the row sees. One stale, missing, extra or misplaced entry of
// either layer changes the next token. Some instances have a third layer as well, with a state that is a
// hash of all entries so far. A draft model is another instance, which differs from the target for some
// texts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "models/blocks/state_plan.h"
#include "models/model.h"

namespace outrider {

inline constexpr int kLetters = 20;
inline constexpr TokenId kEos = kLetters;
inline constexpr int kPadding = 3;  // rows of the output head without a token

inline constexpr int64_t kOutputs = kLetters + 1 + kPadding;

class HashModel : public Model {
 public:
  // For this share of all texts its logits differ from the model with error 0, depending on `seed`.
  explicit HashModel(double error_rate = 0.0, uint64_t seed = 0, bool has_state = false);

  const ModelConfig& config() const override { return config_; }
  KvShape kv_shape() const override;
  int64_t parameter_count() const override { return 0; }
  int64_t weight_bytes() const override { return 0; }
  Status reserve(int64_t, int64_t) override { return {}; }
  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override;
  void run_pass(const ForwardBatch& batch, KvCache& cache) override { forward(batch, cache); }
  std::span<const float> logits_at(int64_t row) override {
    const auto size = static_cast<size_t>(config_.vocab_size);
    return std::span<const float>(logits_).subspan(static_cast<size_t>(row) * size, size);
  }
  // Every subset runs only the first layer; its logits resemble the logits of both layers.
  SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) override;

  void tap(FeatureTaps taps) override { OUTRIDER_CHECK(taps.count() == 0); }  // it has no inner state
  int64_t feature_size() const override { return 0; }
  std::span<const float> features() override { return {}; }
  void measure_into(PassProfile*) override {}         // it has no operations
  LayerBackend& backend() override { std::abort(); }  // it has no operations
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override {
    return std::make_unique<HostPages>(shape);
  }
  std::span<const float> hidden_states() override { return {}; }
  FloatAddress hidden_rows() override { return {}; }
  void embed_tokens(std::span<const TokenId>, FloatAddress) override {}
  FloatAddress output_head(FloatAddress, int64_t) override { return {}; }

  // [vocab]: the logits after `tokens`, computed without a batch or a cache.
  std::vector<float> logits_after(std::span<const TokenId> tokens) const;

 private:
  class View;
  void run_first_layer(const ForwardBatch& batch, KvCache& cache);
  void run_recurrent_layer(const ForwardBatch& batch, KvCache& cache);
  // own: hash of the row's state; seen: hash of all states of the second layer that the row sees.
  void fill_logits(uint64_t own, uint64_t seen, std::span<float> out) const;

  ModelConfig config_;
  double error_rate_;
  uint64_t seed_;
  bool has_state_;
  std::vector<float> logits_, states_;
  std::vector<int32_t> rows_;  // of the batch
  std::vector<float> after_;   // [rows, kStateSize]: the state of the third layer after each row
  StatePlan plan_;
};

}  // namespace outrider
