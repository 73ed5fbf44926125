// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/dflash.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/dflash_network.h"
#include "drafters/draft_state.h"
#include "drafters/learned/context_pass.h"
#include "drafters/learned/feature_store.h"
#include "speculation/tree/tree_growth.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

// Tokens that are cached together.
constexpr int64_t kMaxContext = 256;

class DFlashDrafter final : public Drafter {
 public:
  DFlashDrafter(std::unique_ptr<DFlashNetwork> network, const KvShape& shape,
                const SpeculativeOptions& options, const DrafterContext& context);

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override {
    return store_.find(tokens, scope, static_cast<int>(cache_.find(tokens, scope).length));
  }
  void end(uint64_t sequence) override { sequences_.erase(sequence); }
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) override {
    return disk_ && disk_->restore(sequence, tokens, scope, limit_ms);
  }
  bool save(bool everything) override { return disk_ && disk_->save(everything); }
  DrafterMemory memory() const override {
    return {.weight_bytes = network_->weight_bytes(),
            .cache_bytes = cache_.shape().total_bytes() + store_.bytes()};
  }

 private:
  struct Sequence {
    KvSequence kv;
    FeatureStore::Waiting waiting;
    RequestHistory history;
  };
  using Context = ContextPass<Sequence>;
  // A sequence while its tree grows.
  struct Growing {
    TreeGrowth growth;
    DraftRequest request;  // limited to the depth of the block
    std::optional<KvTransaction> staged;
  };

  void read_all();
  void compute_context(const ForwardBatch& batch, std::span<const Context::Piece> pieces);
  void start(const DraftRequest& request, TokenTree& tree);
  void run_blocks();
  void grow(Growing& growing, FloatAddress states, FloatAddress logits);
  void list_frontier(const TreeGrowth& growth, bool has_parents);

  int64_t hidden_size() const { return network_->config().layers.hidden_size; }

  DrafterTraits traits_;
  std::unique_ptr<DFlashNetwork> network_;
  KvCache cache_;
  std::unique_ptr<KvDisk> disk_;  // of the cache, or null
  FeatureStore store_;
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_;
  double least_confidence_ = 0.0;  // a place with less by the head's own estimate ends its path; 0: off
  int places_;                     // places of a block that are drafted
  size_t vocab_;                   // ids that may be drafted, the first of a row of logits
  int64_t width_;                  // of a row of logits
  int64_t max_length_;
  Context context_{kMaxContext};
  LayerBackend& backend_;
  BackendRows gathered_;          // [rows, numbers]: features, then states
  std::vector<int32_t> drafted_;  // rows of a pass
  std::vector<TokenId> before_;   // tokens of a frontier
  std::vector<int> listed_;       // its nodes
  std::vector<int> parents_;      // of each: the place of its parent in the frontier before
  ForwardBatch batch_;
  std::vector<std::unique_ptr<Growing>> growing_;  // the first active_ of them, then spare ones
  size_t active_ = 0;
  std::unordered_map<uint64_t, Sequence> sequences_;  // destroyed before the cache of their pages
};

DFlashDrafter::DFlashDrafter(std::unique_ptr<DFlashNetwork> network, const KvShape& shape,
                             const SpeculativeOptions& options, const DrafterContext& context)
    : traits_{.name = std::string(method_name(options.decoding_type)), .emits_probabilities = true},
      network_(std::move(network)),
      cache_(shape, KvOptions(), context.target->make_storage(shape)),
      store_(context.target->backend(), network_->taps().count() * context.target->config().hidden_size,
             shape, context.max_batch, 0),
      policy_(make_tree_policy(options)),
      growth_(growth_options(options, policy_.get())),
      places_(network_->config().places()),
      vocab_(static_cast<size_t>(context.vocab_size)),
      width_(context.target->config().vocab_size),
      max_length_(context.context),
      backend_(context.target->backend()),
      gathered_(backend_) {
  traits_.features = network_->taps();
  traits_.states = context.states_of(traits_.features.count() * context.target->config().hidden_size);
  const auto& markov = network_->config().markov;
  if (markov && markov->has_confidence) std::swap(least_confidence_, growth_.min_probability);
  disk_ = context.open_disk(cache_, options.decoding_type, context.files->head_file()->file);
}

void DFlashDrafter::begin(uint64_t id, std::span<const TokenId> tokens, uint64_t scope) {
  Sequence& sequence = sequences_[id];
  sequence.kv = cache_.open(tokens, scope);
  if (disk_) disk_->release();
  sequence.kv.reserve(max_length_ + network_->config().block_size);
  sequence.history.reserve(static_cast<size_t>(max_length_));
  sequence.waiting = store_.open(tokens, scope, sequence.kv.length());
}

void DFlashDrafter::absorb(std::span<const CommittedFeatures> committed) {
  store_.absorb(committed, sequences_, [&] { read_all(); });
}

// Reads all features that wait.
void DFlashDrafter::read_all() {
  const auto compute = [&](const auto& batch, auto pieces) { compute_context(batch, pieces); };
  for (auto& [id, sequence] : sequences_) context_.add_waiting(cache_, sequence, compute);
  context_.finish(store_, compute);
}

void DFlashDrafter::compute_context(const ForwardBatch& batch, std::span<const Context::Piece> pieces) {
  const int64_t size = traits_.states.size;
  gathered_.reserve(batch.rows(), size);
  FloatAddress row = gathered_.data();
  for (const Context::Piece& piece : pieces) {
    store_.gather(piece.owner->waiting, piece.first, std::ssize(piece.tokens), row);
    row = row + std::ssize(piece.tokens) * size;
  }
  network_->add_context(batch, gathered_.data(), cache_);
}

Status DFlashDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  const auto compute = [&](const auto& batch, auto pieces) { compute_context(batch, pieces); };
  for (const DraftRequest& request : requests) {
    const auto found = sequences_.find(request.sequence);
    if (found != sequences_.end()) context_.add_waiting(cache_, found->second, compute);
  }
  context_.finish(store_, compute);
  active_ = 0;
  batch_.clear();
  for (size_t i = 0; i < requests.size(); ++i) start(requests[i], trees[i]);
  if (active_ == 0) return {};
  run_blocks();
  const FloatAddress logits = network_->logits(gathered_.data(), static_cast<int64_t>(active_) * places_);
  for (size_t i = 0; i < active_; ++i) {
    const int64_t row = static_cast<int64_t>(i) * places_;
    grow(*growing_[i], gathered_.data() + row * hidden_size(), logits + row * width_);
  }
  return {};
}

// states and logits [places_, numbers] of the sequence's block
void DFlashDrafter::grow(Growing& growing, FloatAddress states, FloatAddress logits) {
  TreeGrowth& growth = growing.growth;
  for (int64_t place = 0; !growth.frontier().empty(); ++place) {
    const FloatAddress own = logits + place * width_, state = states + place * hidden_size();
    if (!network_->config().follows_tokens()) {
      growth.expand([&](size_t) { return backend_.read(own, static_cast<int64_t>(vocab_)); });
      continue;
    }
    const TokenTree& tree = growth.tree();
    if (least_confidence_ > 0.0) {
      growth.retain(
          [&](int node) { return network_->confidence(state, tree.token(node)) >= least_confidence_; });
    }
    list_frontier(growth, place > 0);
    if (before_.empty()) break;
    const std::span<const float> biased =
        network_->logits_after(own, state, {.tokens = before_, .from = parents_});
    growth.expand([&](size_t node) { return biased.subspan(node * static_cast<size_t>(width_), vocab_); });
  }
  growing.staged.reset();
}

// The tokens of the frontier, and the places of their parents in the list before.
void DFlashDrafter::list_frontier(const TreeGrowth& growth, bool has_parents) {
  before_.clear();
  parents_.clear();
  for (const int node : growth.frontier()) {
    before_.push_back(growth.tree().token(node));
    if (!has_parents) continue;
    const auto parent = std::ranges::find(listed_, growth.tree().parent(node));
    parents_.push_back(static_cast<int>(parent - listed_.begin()));
  }
  listed_.assign(growth.frontier().begin(), growth.frontier().end());
}

// Appends the sequence's block, if all its features are there.
void DFlashDrafter::start(const DraftRequest& request, TokenTree& tree) {
  const auto found = sequences_.find(request.sequence);
  if (found == sequences_.end() || std::cmp_not_equal(found->second.kv.length(), request.tokens.size() - 1))
    return;
  Sequence& sequence = found->second;
  auto staged = cache_.stage(sequence.kv, static_cast<int>(network_->config().block_size));
  if (!staged.ok()) return;
  if (active_ == growing_.size()) growing_.push_back(std::make_unique<Growing>());
  Growing& growing = *growing_[active_];
  growing.request = request;
  growing.request.max_draft_len = std::min(request.max_draft_len, places_);
  growing.growth.start(growth_, growing.request, tree, sequence.history.sync(request));
  if (growing.growth.frontier().empty()) return;
  network_->append_block(batch_, sequence.kv, *staged, request.tokens.back());
  growing.staged = std::move(*staged);
  ++active_;
}

// Gathers the states of the drafted places of all blocks, [active_, places_, hidden].
void DFlashDrafter::run_blocks() {
  const FloatAddress states = network_->run(batch_, cache_);
  const DFlashConfig& config = network_->config();
  drafted_.clear();
  for (int64_t block = 0; block < static_cast<int64_t>(active_); ++block) {
    for (int place = 0; place < places_; ++place)
      drafted_.push_back(static_cast<int32_t>(block * config.block_size + config.first_place + place));
  }
  gathered_.reserve(std::ssize(drafted_), hidden_size());
  backend_.copy({states, hidden_size(), drafted_, gathered_.data(), hidden_size(), hidden_size()});
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_dflash_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context) {
  OUTRIDER_TRY(const HeadFile* head, context.head_for(options));
  OUTRIDER_TRY(std::unique_ptr<DFlashNetwork> network,
               DFlashNetwork::load(*head, context.target, context.model_options()));
  const int64_t block = network->config().block_size;
  network->reserve(std::max(kMaxContext, context.max_batch * block));
  KvShape shape = network->kv_shape();
  shape.page_size = context.page_size;
  shape.type = context.kv_type;
  shape.page_count =
      context.max_batch * ((context.context + block + shape.page_size - 1) / shape.page_size + 1);
  return std::shared_ptr<Drafter>(
      std::make_shared<DFlashDrafter>(std::move(network), shape, options, context));
}

}  // namespace outrider
