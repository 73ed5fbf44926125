// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/assistant.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "config/methods.h"
#include "draft_heads/assistant/assistant_network.h"
#include "drafters/draft_state.h"
#include "drafters/learned/last_states.h"
#include "drafters/target_access.h"
#include "speculation/tree/tree_growth.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

class AssistantDrafter final : public Drafter {
 public:
  AssistantDrafter(std::unique_ptr<AssistantNetwork> network, const SpeculativeOptions& options,
                   const DrafterContext& context)
      : network_(std::move(network)),
        policy_(make_tree_policy(options)),
        growth_(growth_options(options, policy_.get())),
        vocab_(static_cast<size_t>(context.vocab_size)),
        backend_(context.target->backend()),
        inputs_(backend_),
        last_states_(static_cast<size_t>(context.context)) {}

  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void absorb(std::span<const CommittedFeatures> committed) override { last_states_.absorb(committed); }
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t /*scope*/) override {
    return LastStates::known_tokens(tokens);
  }
  void end(uint64_t sequence) override { last_states_.end(sequence); }
  DrafterMemory memory() const override { return {.weight_bytes = network_->weight_bytes()}; }

 private:
  // A sequence while its tree grows.
  struct Growing {
    explicit Growing(LayerBackend& backend) : states(backend) {}

    TreeGrowth growth;
    const LastStates::Sequence* sequence = nullptr;
    BackendRows states;  // [nodes, hidden size of the target]: the network's after each node
    size_t first = 0;    // its first row in the pass
  };

  void start(const DraftRequest& request, TokenTree& tree);
  void append_frontier(Growing& growing);
  void expand(Growing& growing, const AssistantNetwork::Output& output);
  int64_t size() const { return network_->config().target_hidden; }

  DrafterTraits traits_{.name = std::string(method_name(Method::kAssistant)),
                        .emits_probabilities = true,
                        .uses_target = true,
                        .features = {.final_norm = true}};
  std::unique_ptr<AssistantNetwork> network_;
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_;
  size_t vocab_;
  std::vector<std::unique_ptr<Growing>> growing_;  // the first active_ of them, then spare ones
  size_t active_ = 0;
  std::vector<AssistantNetwork::Row> rows_;  // of a pass
  LayerBackend& backend_;
  BackendRows inputs_;  // [rows, hidden size of the target]
  LastStates last_states_;
};

Status AssistantDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  active_ = 0;
  for (size_t i = 0; i < requests.size(); ++i) start(requests[i], trees[i]);
  for (bool is_first = true;; is_first = false) {
    rows_.clear();
    for (size_t i = 0; i < active_; ++i) append_frontier(*growing_[i]);
    if (rows_.empty()) return {};
    const size_t rows = rows_.size();
    const double begin = now_ms();
    KvCache& cache = *growing_.front()->growth.request().target->cache;
    const AssistantNetwork::Output output = network_->run(rows_, inputs_.data(), cache);
    for (size_t i = 0; i < active_; ++i) expand(*growing_[i], output);
    const auto sequences = static_cast<double>(active_);
    if (!is_first)
      growth_.level_time.learn(static_cast<double>(rows) / sequences, (now_ms() - begin) / sequences);
  }
}

// The sequence takes part, if the target's state of the token before the pending one is known.
void AssistantDrafter::start(const DraftRequest& request, TokenTree& tree) {
  LastStates::Sequence* const sequence = last_states_.find(request);
  if (sequence == nullptr || request.target->sequence->length() != sequence->length) return;
  if (active_ == growing_.size()) growing_.push_back(std::make_unique<Growing>(backend_));
  Growing& growing = *growing_[active_++];
  growing.sequence = sequence;
  growing.growth.start(growth_, request, tree, sequence->history.sync(request));
}

// A node reads the state of its parent, the root the target's.
void AssistantDrafter::append_frontier(Growing& growing) {
  growing.first = rows_.size();
  const TokenTree& tree = growing.growth.tree();
  inputs_.extend(std::ssize(rows_) + std::ssize(growing.growth.frontier()), size());
  for (const int node : growing.growth.frontier()) {
    const int parent = tree.parent(node);
    const int64_t row = std::ssize(rows_);
    rows_.push_back({tree.token(node), growing.growth.request().target->sequence});
    if (parent < 0) {
      inputs_.write(growing.sequence->state, row);
    } else {
      backend_.copy_strided(
          {growing.states.data() + parent * size(), 0, inputs_.data() + row * size(), 0, 1, size()});
    }
  }
}

void AssistantDrafter::expand(Growing& growing, const AssistantNetwork::Output& output) {
  TreeGrowth& growth = growing.growth;
  if (growth.frontier().empty()) return;
  growing.states.extend(growth.tree().size(), size());
  for (size_t i = 0; i < growth.frontier().size(); ++i) {
    const FloatAddress state = output.states + static_cast<int64_t>(growing.first + i) * size();
    backend_.copy_strided({state, 0, growing.states.data() + growth.frontier()[i] * size(), 0, 1, size()});
  }
  const auto width = static_cast<size_t>(network_->config().layers.vocab_size);
  growth.expand([&](size_t i) { return output.logits.subspan((growing.first + i) * width, vocab_); });
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_assistant_drafter(const SpeculativeOptions& options,
                                                        const DrafterContext& context) {
  if (context.is_remote) {
    return usage_error(std::string(method_name(Method::kAssistant)) +
                       " reads keys and values of the target, found one on another machine; choose another "
                       "method");
  }
  OUTRIDER_TRY(const HeadFile* head, context.head_for(options));
  OUTRIDER_TRY(std::unique_ptr<AssistantNetwork> network,
               AssistantNetwork::load(*head, context.target, context.model_options()));
  network->reserve(int64_t{context.max_batch} *
                   make_tree_policy(options)->usual_width(max_tree_nodes(options)));
  return std::shared_ptr<Drafter>(std::make_shared<AssistantDrafter>(std::move(network), options, context));
}

}  // namespace outrider
