// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/backend/layer_backend.h"
#include "models/team/messages.h"
#include "models/team/part_pass.h"
#include "ranks/communicator.h"

namespace outrider {

// How a model is divided among ranks.
struct RankOptions {
  Communicator* joined =
      nullptr;              // the job of this process, which is its rank 0; null: ranks are threads here
  int shards = 1;           // ranks that share every layer
  int stages = 1;           // groups of layers that follow one another
  int threads = 0;          // of every other rank; 0: its share of its machine
  int64_t micro_rows = 32;  // see PartPass
};

// Tells all other ranks that the job is over; for rank 0.
void end_job(Communicator& ranks);

// A model that several ranks have, seen from rank 0: it has one part itself and tells the others what to do.
// Its caller has the page tables of all, because slots mean the same entries in the caches of all ranks.
class RankedModel final : public Model {
 public:
  // Errors: as of Model::load() at any rank; a job of another size.
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, ModelOptions options,
                                             const RankOptions& ranks);
  ~RankedModel() override;

  const ModelConfig& config() const override { return own_->config(); }
  KvShape kv_shape() const override { return own_->kv_shape(); }
  int64_t parameter_count() const override { return parameter_count_; }
  int64_t weight_bytes() const override { return weight_bytes_; }
  bool maps_weights() const override { return own_->maps_weights(); }
  int64_t streamed_bytes() const override { return own_->streamed_bytes(); }
  // Shards activate the same experts; other pipeline stages' are not known here.
  int64_t active_experts() const override { return own_->active_experts(); }
  int64_t pass_bytes() const override { return own_->pass_bytes(); }
  Status share_cache(KvCache& cache) override;
  Status reserve(int64_t rows, int64_t logits_rows) override;
  std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) override;
  void run_pass(const ForwardBatch& batch, KvCache& cache) override { forward(batch, cache); }
  std::span<const float> logits_at(int64_t row) override {
    const auto size = static_cast<size_t>(config().vocab_size);
    return pass_->logits().subspan(static_cast<size_t>(row) * size, size);
  }
  std::span<const float> hidden_states() override { return pass_->states(); }
  SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset& layers) override;
  void tap(FeatureTaps taps) override;
  int64_t feature_size() const override { return taps_.count() * config().hidden_size; }
  std::span<const float> features() override { return pass_->features(); }
  Traffic traffic() const override { return ranks_.traffic(); }
  void measure_into(PassProfile* profile) override;
  LayerBackend& backend() override { return own_->backend(); }
  std::optional<DeviceCounts> device_counts() const override { return own_->device_counts(); }
  std::optional<double> device_copy_ms(int64_t bytes) override { return own_->device_copy_ms(bytes); }
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override { return own_->make_storage(shape); }
  FloatAddress hidden_rows() override { return place(pass_->states(), state_rows_); }
  void embed_tokens(std::span<const TokenId> tokens, FloatAddress out) override;
  FloatAddress output_head(FloatAddress states, int64_t rows) override;

 private:
  class Threads;  // the other ranks, where they are threads of this process

  RankedModel(std::unique_ptr<Threads> threads, Communicator& ranks);
  Status open(const ModelFile& file, ModelOptions options, const RankOptions& settings);
  void tell(const MessageWriter& message) const;
  // The first error that a rank answers with.
  Status collect();
  void run(PassOrder order, KvCache& cache);
  FloatAddress place(std::span<const float> numbers, std::optional<BackendRows>& rows);
  // Makes a call that all ranks take part in. An exception ends the job.
  template <typename Call>
  auto together(Call&& call) const;

  std::unique_ptr<Threads> threads_;
  Communicator& ranks_;
  std::unique_ptr<Model> own_;
  std::optional<PartPass> pass_;
  FeatureTaps taps_;
  std::vector<KvMove> moves_;  // in the cache since the last pass
  int64_t parameter_count_ = 0;
  int64_t weight_bytes_ = 0;  // of all ranks
  std::vector<float> head_logits_;
  std::optional<BackendRows> logits_rows_, state_rows_;  // results of other ranks
};

}  // namespace outrider
