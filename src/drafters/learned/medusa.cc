// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/medusa.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "config/methods.h"
#include "draft_heads/medusa.h"
#include "drafters/device_trees.h"
#include "drafters/draft_state.h"
#include "drafters/learned/last_states.h"
#include "drafters/learned/place_states.h"
#include "speculation/tree/tree_growth.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

class MedusaDrafter final : public Drafter, private DeviceDraft {
 public:
  MedusaDrafter(std::unique_ptr<MedusaHeads> heads, const SpeculativeOptions& options,
                const DrafterContext& context);

  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void absorb(std::span<const CommittedFeatures> committed) override { last_states_.absorb(committed); }
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t /*scope*/) override {
    return LastStates::known_tokens(tokens);
  }
  DrafterMemory memory() const override { return {.weight_bytes = heads_->weight_bytes()}; }
  void end(uint64_t sequence) override { last_states_.end(sequence); }
  DeviceDraft* device_draft() override { return device_growth_.is_possible() ? this : nullptr; }

 private:
  Status reserve(const Shape& shape) override;
  int max_levels() const override { return static_cast<int>(heads_->shape().head_count); }
  bool takes(const DraftRequest& request) const override { return device_growth_.takes(request); }
  bool has_branches() const override { return device_growth_.has_branches(); }
  bool start(std::span<const Row> rows) override;
  void record(const simt::Trees& trees, DeviceList& list) override;
  void record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) override;
  int64_t moves() const override { return device_->moves(); }
  void finish(uint64_t sequence, std::span<const TokenId> tokens) override;

  // A sequence while its tree grows.
  struct Growing {
    TreeGrowth growth;
    DraftRequest request;  // limited to the number of heads
  };

  void start(const DraftRequest& request, TokenTree& tree);

  DrafterTraits traits_{.name = std::string(method_name(Method::kMedusa)),
                        .emits_probabilities = true,
                        .features = {.final_norm = true}};
  std::unique_ptr<MedusaHeads> heads_;
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_;
  size_t vocab_;
  BackendRows states_;                             // [growing, hidden size]
  std::vector<std::unique_ptr<Growing>> growing_;  // the first active_ of them, then spare ones
  size_t active_ = 0;
  LastStates last_states_;
  LayerBackend& backend_;
  DeviceGrowth device_growth_;
  DeviceBackend* device_ = nullptr;          // the backend, from DeviceDraft::reserve() on
  std::optional<DeviceTrees> device_trees_;  // as device_
  std::optional<PlaceStates> places_;        // as device_
  std::map<uint64_t, int64_t> running_;      // numbers of the sequences that draft in the run
};

MedusaDrafter::MedusaDrafter(std::unique_ptr<MedusaHeads> heads, const SpeculativeOptions& options,
                             const DrafterContext& context)
    : heads_(std::move(heads)),
      policy_(make_tree_policy(options)),
      growth_(growth_options(options, policy_.get())),
      vocab_(static_cast<size_t>(context.vocab_size)),
      states_(context.target->backend()),
      last_states_(static_cast<size_t>(context.context)),
      backend_(context.target->backend()),
      device_growth_(options) {
  traits_.states = context.states_of(heads_->shape().hidden_size);
  heads_->reserve(context.max_batch);
  states_.reserve(context.max_batch, heads_->shape().hidden_size);
  for (int i = 0; i < context.max_batch; ++i) growing_.push_back(std::make_unique<Growing>());
}

Status MedusaDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  active_ = 0;
  states_.reserve(std::ssize(requests), heads_->shape().hidden_size);
  for (size_t i = 0; i < requests.size(); ++i) start(requests[i], trees[i]);
  if (active_ == 0) return {};
  heads_->start(states_.data(), static_cast<int64_t>(active_));
  bool is_growing = true;
  for (int64_t level = 0; is_growing; ++level) {
    const double begin = now_ms();
    const std::span<const float> logits = heads_->logits(level);
    if (level > 0) growth_.level_time.learn(1.0, (now_ms() - begin) / static_cast<double>(active_));
    is_growing = false;
    for (size_t row = 0; row < active_; ++row) {
      TreeGrowth& growth = growing_[row]->growth;
      if (growth.frontier().empty()) continue;
      growth.expand([&](size_t) {
        return logits.subspan(row * static_cast<size_t>(heads_->shape().vocab_size), vocab_);
      });
      is_growing |= !growth.frontier().empty();
    }
  }
  return {};
}

// Adds a row, if the state that the heads look at is known.
void MedusaDrafter::start(const DraftRequest& request, TokenTree& tree) {
  LastStates::Sequence* const sequence = last_states_.find(request);
  if (sequence == nullptr) return;
  if (growing_.size() == active_) growing_.push_back(std::make_unique<Growing>());
  Growing& growing = *growing_[active_];
  growing.request = request;
  growing.request.max_draft_len = std::min(request.max_draft_len, max_levels());
  growing.growth.start(growth_, growing.request, tree, sequence->history.sync(request));
  if (growing.growth.frontier().empty()) return;
  states_.write(sequence->state, static_cast<int64_t>(active_));
  ++active_;
}

Status MedusaDrafter::reserve(const Shape& shape) {
  device_ = dynamic_cast<DeviceBackend*>(&backend_);
  if (device_ == nullptr) return usage_error("the heads are not on a device");
  device_trees_.emplace(*device_,
                        DeviceTrees::Network{.vocab_size = static_cast<int64_t>(vocab_),
                                             .row_size = heads_->shape().vocab_size,
                                             .feature_page_size = 1,
                                             .predicts_levels = true},
                        device_growth_, shape);
  places_.emplace(device_->launcher().device(), heads_->shape().hidden_size, shape);
  heads_->reserve(shape.max_sequences);
  states_.reserve(shape.max_sequences, heads_->shape().hidden_size);
  return {};
}

bool MedusaDrafter::start(std::span<const Row> rows) {
  running_.clear();
  std::vector<DeviceTrees::Row> of_rows(rows.size());
  std::vector<SamplingParams> samplings(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const DraftRequest& request = rows[i].request;
    if (request.max_draft_len == 0) continue;
    const LastStates::Sequence* const sequence = last_states_.find(request);
    if (sequence == nullptr) return false;
    const auto index = static_cast<int64_t>(i);
    running_[request.sequence] = index;
    places_->start(index, std::ssize(request.tokens), sequence->state);
    samplings[i] = device_growth_.sampling_of(request);
    of_rows[i] = {.features = places_->pages(index), .choice = {&samplings[i], request.sample_index}};
  }
  device_trees_->start(of_rows);
  return true;
}

void MedusaDrafter::record(const simt::Trees& trees, DeviceList& list) {
  const auto gather = [&](int64_t rows) {
    places_->record_gather(device_->launcher(), device_trees_->feature_slots(), rows, states_.data());
  };
  const auto forward = [&](const ForwardBatch& batch, int level) {
    if (level == 0) heads_->start(states_.data(), batch.rows());
    heads_->logits(level);
    return DeviceTrees::Output{.logits = heads_->logit_rows()};
  };
  device_trees_->record(trees, list, {.forward = forward, .gather = gather});
}

void MedusaDrafter::record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) {
  device_trees_->record_features(trees, list, [&](int64_t rows) {
    places_->record_keep(device_->launcher(), device_trees_->kept_slots(), features, rows);
  });
}

void MedusaDrafter::finish(uint64_t sequence, std::span<const TokenId> tokens) {
  const auto found = running_.find(sequence);
  if (found == running_.end() || tokens.empty()) return;
  last_states_.set(sequence, places_->state_before(found->second, std::ssize(tokens)),
                   std::ssize(tokens) - 1);
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_medusa_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context) {
  OUTRIDER_TRY(const HeadFile* head, context.head_for(options));
  OUTRIDER_TRY(
      std::unique_ptr<MedusaHeads> heads,
      MedusaHeads::load(*head, context.target->config(), context.target->backend(), context.model_options()));
  if (options.tree.kind == TreeKind::kChoices && depth_of(options.tree.choices) > heads->shape().head_count) {
    return usage_error("medusa_choices expects no more levels than there are heads, " +
                       std::to_string(heads->shape().head_count) + ", found " +
                       std::to_string(depth_of(options.tree.choices)) + "; leave out the longer nodes");
  }
  return std::shared_ptr<Drafter>(std::make_shared<MedusaDrafter>(std::move(heads), options, context));
}

}  // namespace outrider
