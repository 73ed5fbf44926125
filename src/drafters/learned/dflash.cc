// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/dflash.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/dflash_network.h"
#include "drafters/device_trees.h"
#include "drafters/draft_state.h"
#include "drafters/learned/context_pass.h"
#include "drafters/learned/feature_store.h"
#include "speculation/tree/tree_growth.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

// Tokens that are cached together.
constexpr int64_t kMaxContext = 256;

class DFlashDrafter final : public Drafter, private DeviceDraft {
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
  DeviceDraft* device_draft() override { return has_device_form_ ? this : nullptr; }

 private:
  Status reserve(const Shape& shape) override;
  int max_levels() const override { return places_; }
  bool takes(const DraftRequest& request) const override { return device_growth_.takes(request); }
  bool has_branches() const override { return device_growth_.has_branches(); }
  bool start(std::span<const Row> rows) override;
  void record(const simt::Trees& trees, DeviceList& list) override;
  void record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) override;
  int64_t moves() const override { return device_->moves(); }
  void finish(uint64_t sequence, std::span<const TokenId> tokens) override;

  struct Sequence {
    KvSequence kv;
    FeatureStore::Waiting waiting;
    RequestHistory history;
    // In a run of a device: entries of its tokens and blocks, and features that are kept.
    std::optional<KvTransaction> staged = {}, kept = {};
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
  bool stage_run(Sequence& sequence, const Row& row);
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
  DeviceGrowth device_growth_;
  bool has_device_form_;
  DeviceBackend* device_ = nullptr;          // the backend, from DeviceDraft::reserve() on
  std::optional<DeviceTrees> device_trees_;  // as device_
  int device_levels_ = 0;                    // of the deepest tree
  // Rows of a pass that is recorded: [levels, sequences, numbers].
  FloatAddress device_logits_, device_states_;
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
      gathered_(backend_),
      device_growth_(options),
      has_device_form_(device_growth_.is_possible() && network_->config().can_be_recorded()) {
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

Status DFlashDrafter::reserve(const Shape& shape) {
  device_ = dynamic_cast<DeviceBackend*>(&backend_);
  if (device_ == nullptr) return usage_error("the head is not on a device");
  device_levels_ = shape.max_levels;
  const DFlashConfig& config = network_->config();
  const auto size = static_cast<int>(config.block_size);
  device_trees_.emplace(*device_,
                        DeviceTrees::Network{.vocab_size = static_cast<int64_t>(vocab_),
                                             .row_size = width_,
                                             .page_size = cache_.shape().page_size,
                                             .feature_page_size = store_.page_size(),
                                             .predicts_levels = true,
                                             .follows_tokens = config.follows_tokens(),
                                             .block = DeviceTrees::Network::Block{size, config.mask}},
                        device_growth_, shape);
  network_->reserve(std::max<int64_t>(shape.max_levels + 1, size) * shape.max_sequences);
  network_->reserve_recorded(int64_t{device_growth_.width()} * shape.max_sequences);
  return {};
}

bool DFlashDrafter::start(std::span<const Row> rows) {
  const auto compute = [&](const auto& batch, auto pieces) { compute_context(batch, pieces); };
  std::vector<Sequence*> found(rows.size(), nullptr);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto sequence = sequences_.find(rows[i].request.sequence);
    if (sequence == sequences_.end()) continue;
    found[i] = &sequence->second;
    context_.add_waiting(cache_, *found[i], compute, /*left=*/1);
  }
  context_.finish(store_, compute);
  std::vector<DeviceTrees::Row> of_rows(rows.size());
  std::vector<SamplingParams> samplings(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const DraftRequest& request = rows[i].request;
    const bool drafts = request.max_draft_len > 0;
    if (found[i] == nullptr && !drafts) continue;
    if (found[i] == nullptr || !stage_run(*found[i], rows[i])) return false;
    const Sequence& sequence = *found[i];
    if (sequence.kept) of_rows[i].features = {sequence.waiting.rows.pages(), sequence.waiting.first};
    if (!drafts) continue;
    samplings[i] = device_growth_.sampling_of(request);
    of_rows[i].pages = {sequence.kv.pages()};
    of_rows[i].choice = {&samplings[i], request.sample_index};
  }
  device_trees_->start(of_rows);
  return true;
}

// Room for the features of the tokens that the sequence gets, also if it drafts nothing, as its text may be
// computed again. One that drafts has an entry of every token before the last known features, and gets
// entries of its tokens and its last block. False: there is no room, or something is missing.
bool DFlashDrafter::stage_run(Sequence& sequence, const Row& row) {
  const FeatureStore::Waiting& waiting = sequence.waiting;
  const bool drafts = row.request.max_draft_len > 0;
  if (!waiting.is_complete || waiting.end() + 1 != std::ssize(row.request.tokens)) return !drafts;
  sequence.kept = store_.stage(sequence.waiting, row.tokens);
  if (!drafts || !sequence.kept) return sequence.kept.has_value();
  if (waiting.end() - sequence.kv.length() != 1) return false;
  const auto block = static_cast<int>(network_->config().block_size);
  auto staged = cache_.stage(sequence.kv, row.before_last + 1 + block);
  if (!staged.ok()) return false;
  sequence.staged = std::move(*staged);
  return true;
}

void DFlashDrafter::record(const simt::Trees& trees, DeviceList& list) {
  const DFlashConfig& config = network_->config();
  const MarkovMixer* const cells = network_->cells();
  gathered_.reserve(device_trees_->rows_of(trees.sequences), traits_.states.size);
  const auto gather = [&](int64_t rows) { store_.record_gather(rows, gathered_.data()); };
  const auto run_block = [&](const ForwardBatch& block) {
    const FloatAddress states =
        network_->run(block, cache_, [&](bool is_causal) { device_trees_->see_block(is_causal); });
    device_states_ = states + config.first_place * trees.sequences * hidden_size();
    device_logits_ = network_->logits(device_states_, int64_t{trees.levels} * trees.sequences);
  };
  const auto forward = [&](const ForwardBatch& batch, int level) {
    if (level == 0) {
      network_->add_context(batch, gathered_.data(), cache_);
      device_trees_->record_block(trees, run_block);
    }
    const int64_t place = int64_t{level} * trees.sequences;
    const FloatAddress logits = device_logits_ + place * width_;
    if (!config.follows_tokens()) return DeviceTrees::Output{.logits = logits};
    const FloatAddress after = network_->recorded_logits({.logits = logits,
                                                          .states = device_states_ + place * hidden_size(),
                                                          .count = trees.sequences,
                                                          .is_first = level == 0},
                                                         std::ssize(batch.logits_rows));
    return DeviceTrees::Output{.logits = after, .states = cells ? cells->cells() : FloatAddress()};
  };
  device_trees_->record(trees, list,
                        {.forward = forward,
                         .gather = gather,
                         .inputs = cells ? cells->cells_before() : FloatAddress(),
                         .state_size = cells ? cells->cell_size() : 0});
}

void DFlashDrafter::record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) {
  device_trees_->record_features(trees, list, [&](int64_t rows) { store_.record_keep(features, rows); });
}

// Entries are certain before the root of the last step, which is at most a chain and a token back; the
// features of all tokens before the pending one are there.
void DFlashDrafter::finish(uint64_t id, std::span<const TokenId> tokens) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  const int64_t pending = std::ssize(tokens) - 1;
  commit_run(sequence.staged, sequence.kv.length(), pending - device_levels_ - 2, tokens);
  commit_run(sequence.kept, sequence.waiting.end(), pending, tokens);
  store_.drop(sequence.waiting, sequence.kv.length());
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
