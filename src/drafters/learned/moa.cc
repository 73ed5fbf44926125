// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/moa.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/moa_network.h"
#include "drafters/cached_growth.h"
#include "drafters/learned/context_pass.h"
#include "drafters/learned/feature_store.h"
#include "drafters/learned/target_tail.h"
#include "drafters/target_access.h"

namespace outrider {
namespace {

class MoaDrafter final : public Drafter {
 public:
  MoaDrafter(std::unique_ptr<MoaNetwork> network, const KvShape& shape, const SpeculativeOptions& options,
             const DrafterContext& context)
      : network_(std::move(network)),
        growth_(options, context, shape, {.size = context.vocab_size}, *context.target),
        policy_(make_tree_policy(options)),
        max_length_(context.context),
        is_remote_(context.is_remote),
        backend_(context.target->backend()),
        states_(backend_),
        waiting_(backend_),
        learns_(network_->config().uses_cross && (context.is_remote || !network_->config().uses_layers)) {
    const MoaConfig& config = network_->config();
    disk_ = context.open_disk(growth_.cache(), options.decoding_type, context.files->head_file()->file);
    if (is_remote_ && config.target_layers > 0)
      tail_ = std::make_unique<TargetTail>(
          context.target, config.target_layers,
          CachedGrowth::cache_shape(context.target->kv_shape(), max_length_, options, context));
    traits_.features.final_norm = config.uses_cross && !config.uses_layers;
    if (!config.uses_cross) return;
    input_size_ = config.uses_layers ? network_->pooled_size() : config.self_attention.hidden_size;
    traits_.states = context.states_of(
        input_size_ + TargetTail::row_size(context.target->kv_shape(), config.target_layers));
    if (learns_)
      store_.emplace(backend_, is_remote_ ? traits_.states.size : input_size_, shape, context.max_batch, 0);
  }

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  void collect_states(const CommittedFeatures& committed, const TargetAccess& target, float* out) override;
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override;
  void end(uint64_t sequence) override { sequences_.erase(sequence); }
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) override {
    return disk_ && disk_->restore(sequence, tokens, scope, limit_ms);
  }
  bool save(bool everything) override { return disk_ && disk_->save(everything); }
  DrafterMemory memory() const override {
    return {.weight_bytes = network_->weight_bytes(),
            .cache_bytes = growth_.cache().shape().total_bytes() + (store_ ? store_->bytes() : 0)};
  }

 private:
  struct Sequence : DraftSequence {
    const TargetAccess* target = nullptr;  // the target's access in the current request
    FeatureStore::Waiting waiting;         // what the network reads of the target, unless that is its cache
    TargetTail::Entries tail;              // where the target is remote
  };
  using Context = ContextPass<Sequence>;

  Sequence& open(uint64_t id, std::span<const TokenId> tokens, uint64_t scope);
  DraftRequest within_staged(DraftRequest request) const;
  bool stage_tail(Sequence& sequence, const DraftRequest& request, int64_t uncached);
  void read_all();
  void cache_context(std::span<const DraftRequest> requests);
  void compute_context(const ForwardBatch& batch, std::span<const Context::Piece> pieces);
  // Lists the slots of `count` tokens of the target's cache from `first` on.
  void add_slots(const TargetAccess& target, int first, size_t count);
  std::span<const float> forward(const ForwardBatch& batch, std::span<const CachedGrowth::Rows> rows);
  std::span<const float> run_target_layers(FloatAddress states, std::span<const CachedGrowth::Rows> rows);

  DrafterTraits traits_{
      .name = std::string(method_name(Method::kMoa)), .emits_probabilities = true, .uses_target = true};
  std::unique_ptr<MoaNetwork> network_;
  CachedGrowth growth_;
  std::unique_ptr<KvDisk> disk_;  // of its cache, or null
  std::unique_ptr<TreePolicy> policy_;
  int64_t max_length_;
  bool is_remote_;
  LayerBackend& backend_;
  BackendRows states_;                 // what the network reads of committed tokens, or drafted rows
  BackendRows waiting_;                // rows of the store
  int64_t input_size_ = 0;             // numbers of a state that the network reads; the tail's follow
  std::unique_ptr<TargetTail> tail_;   // null where the whole target is here, or none of its layers drafts
  bool learns_;                        // it is given states of the target; else it reads the target's cache
  std::optional<FeatureStore> store_;  // of these states
  Context context_{MoaNetwork::max_context()};
  std::vector<DraftRequest> requests_;  // requests of this draft, with the limits of their trees
  ForwardBatch target_batch_;
  std::vector<int32_t> slots_;
  std::unordered_map<uint64_t, Sequence> sequences_;  // destroyed before the cache of their pages
};

MoaDrafter::Sequence& MoaDrafter::open(uint64_t id, std::span<const TokenId> tokens, uint64_t scope) {
  auto [found, is_new] = sequences_.try_emplace(id);
  Sequence& sequence = found->second;
  if (is_new) {
    // Entries of earlier sequences lack the tail's.
    sequence.kv = growth_.cache().open(tail_ ? tokens.first(0) : tokens, scope);
    if (disk_) disk_->release();
    if (tail_) tail_->open(sequence.tail);
    if (store_) sequence.waiting = store_->open(tokens, scope, sequence.kv.length());
    growth_.reserve(sequence, max_length_);
  }
  return sequence;
}

void MoaDrafter::begin(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope) {
  if (learns_) open(sequence, tokens, scope);
}

int64_t MoaDrafter::known_tokens(std::span<const TokenId> tokens, uint64_t scope) {
  if (!learns_ || tail_) return Drafter::known_tokens(tokens, scope);
  return store_->find(tokens, scope, static_cast<int>(growth_.cache().find(tokens, scope).length));
}

void MoaDrafter::absorb(std::span<const CommittedFeatures> committed) {
  store_->absorb(committed, sequences_, [&] { read_all(); });
}

// Reads all states that wait.
void MoaDrafter::read_all() {
  const auto compute = [&](const auto& batch, auto pieces) { compute_context(batch, pieces); };
  for (auto& [id, sequence] : sequences_) context_.add_waiting(growth_.cache(), sequence, compute);
  context_.finish(*store_, compute);
}

// Rows that run through the target's layers need its staged entries: the root, and the nodes that are
// expanded, of which there may be more than stay. Where there are no pages for them the tree is less deep.
DraftRequest MoaDrafter::within_staged(DraftRequest request) const {
  if (network_->config().target_layers == 0 || tail_) return request;
  KvTransaction& staged = *request.target->staged;
  for (; request.max_draft_len > 1; --request.max_draft_len) {
    // The last level is not expanded.
    const int entries = 1 + policy_->max_expanded(request.max_nodes, request.max_draft_len - 1);
    if (entries <= staged.count() || staged.extend(entries).ok()) break;
  }
  return request;
}

// Stages entries of the tail for the draft: for the tokens that it begins with, and the nodes that it
// expands.
bool MoaDrafter::stage_tail(Sequence& sequence, const DraftRequest& request, int64_t uncached) {
  const int expanded = policy_->max_expanded(request.max_nodes, request.max_draft_len);
  sequence.target = &sequence.tail.access;
  return tail_->stage(sequence.tail, static_cast<int>(uncached) + expanded);
}

Status MoaDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  cache_context(requests);
  growth_.start();
  requests_.clear();
  requests_.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::span<const TokenId> tokens = requests[i].tokens;
    Sequence& sequence = sequences_.at(requests[i].sequence);
    // Cross-attention needs at least one committed token. Without the target self-attention may read tokens
    // after them.
    const std::span<const TokenId> uncached = tokens.subspan(static_cast<size_t>(sequence.kv.length()));
    if (tokens.size() < 2 || sequence.kv.length() == 0 || uncached.empty()) continue;
    if (uncached.size() > 1 && !is_remote_) continue;
    if (tail_ && !stage_tail(sequence, requests[i], std::ssize(uncached))) continue;
    requests_.push_back(within_staged(requests[i]));
    growth_.add(requests_.back(), trees[i], sequence, uncached);
  }
  growth_.grow([&](const ForwardBatch& batch, std::span<const CachedGrowth::Rows> rows) {
    return forward(batch, rows);
  });
  for (const DraftRequest& request : requests) {
    Sequence& sequence = sequences_.at(request.sequence);
    sequence.staged.reset();
    sequence.tail.staged.reset();
  }
  return {};
}

// Caches all tokens before the pending one of every sequence.
void MoaDrafter::cache_context(std::span<const DraftRequest> requests) {
  const auto compute = [&](const auto& batch, auto pieces) { compute_context(batch, pieces); };
  for (const DraftRequest& request : requests) {
    Sequence& sequence = open(request.sequence, request.tokens, request.scope);
    sequence.target = request.target;
    const auto length = static_cast<size_t>(sequence.kv.length());
    const auto before_pending = request.tokens.first(request.tokens.size() - 1);
    if (learns_) {
      context_.add_waiting(growth_.cache(), sequence, compute);
    } else if (length < before_pending.size()) {
      context_.add(growth_.cache(), sequence, before_pending.subspan(length), compute);
    }
  }
  if (store_) context_.finish(*store_, compute);
  context_.finish(compute);
}

void MoaDrafter::compute_context(const ForwardBatch& batch, std::span<const Context::Piece> pieces) {
  const MoaConfig& config = network_->config();
  if (!config.uses_cross) return network_->add_context(batch, {}, growth_.cache());
  if (learns_) {
    const int64_t stride = is_remote_ ? traits_.states.size : input_size_;
    states_.reserve(batch.rows(), input_size_);
    FloatAddress states = states_.data();
    for (const auto& [owner, first, tokens, transaction] : pieces) {
      waiting_.reserve(std::ssize(tokens), stride);
      store_->gather(owner->waiting, first, std::ssize(tokens), waiting_.data());
      backend_.copy_strided({waiting_.data(), stride, states, input_size_, std::ssize(tokens), input_size_});
      states = states + std::ssize(tokens) * input_size_;
      if (tail_) tail_->add(owner->tail, tokens, waiting_.data() + input_size_, stride);
    }
    states = states_.data();
    if (config.uses_layers) states = network_->states_of(states, batch.rows());
    return network_->add_context(batch, states, growth_.cache());
  }
  slots_.clear();
  for (const auto& [owner, first, tokens, transaction] : pieces)
    add_slots(*owner->target, first, tokens.size());
  const FloatAddress pooled = network_->pool_layers(slots_, *pieces.front().owner->target->cache);
  network_->add_context(batch, network_->states_of(pooled, batch.rows()), growth_.cache());
}

void MoaDrafter::add_slots(const TargetAccess& target, int first, size_t count) {
  const int page_size = target.cache->shape().page_size;
  const std::span<const int32_t> pages = target.sequence->pages();
  for (int entry = first; entry < first + static_cast<int>(count); ++entry)
    slots_.push_back(pages[static_cast<size_t>(entry / page_size)] * page_size + entry % page_size);
}

void MoaDrafter::collect_states(const CommittedFeatures& committed, const TargetAccess& target, float* out) {
  const MoaConfig& config = network_->config();
  const int64_t stride = traits_.states.size;
  constexpr auto kMax = static_cast<size_t>(MoaNetwork::max_context());
  for (size_t begin = 0; begin < committed.rows.size(); begin += kMax) {
    const size_t count = std::min(kMax, committed.rows.size() - begin);
    slots_.clear();
    add_slots(target, committed.first + static_cast<int>(begin), count);
    TargetTail::read_rows(*target.cache, config.target_layers, slots_, out + input_size_, stride);
    const float* pooled = nullptr;
    if (config.uses_layers)
      pooled = backend_.read(network_->pool_layers(slots_, *target.cache), std::ssize(slots_) * input_size_)
                   .data();
    for (size_t i = 0; i < count; ++i, out += stride)
      std::copy_n(pooled ? pooled + static_cast<int64_t>(i) * input_size_ : committed.at(begin + i).data(),
                  input_size_, out);
  }
}

std::span<const float> MoaDrafter::forward(const ForwardBatch& batch,
                                           std::span<const CachedGrowth::Rows> rows) {
  const FloatAddress states = network_->run(batch, growth_.cache());
  if (network_->config().target_layers > 0) return run_target_layers(states, rows);
  if (std::cmp_equal(batch.logits_rows.size(), batch.rows())) return network_->logits(states, batch.rows());
  const int64_t size = network_->config().self_attention.hidden_size;
  states_.reserve(std::ssize(batch.logits_rows), size);
  backend_.copy({states, size, batch.logits_rows, states_.data(), size, size});
  return network_->logits(states_.data(), std::ssize(batch.logits_rows));
}

// Runs drafted rows through the target's last layers, over its own entries of committed tokens; the rows'
// keys and values go into the staged entries.
std::span<const float> MoaDrafter::run_target_layers(FloatAddress states,
                                                     std::span<const CachedGrowth::Rows> rows) {
  target_batch_.clear();
  const TargetAccess* target = nullptr;
  for (const CachedGrowth::Rows& of : rows) {
    target = static_cast<const Sequence*>(of.sequence)->target;
    target->exits->clear();  // entries that other drafters computed are overwritten
    append_tree(target_batch_, *target->sequence, *target->staged,
                {of.sequence->tokens, of.sequence->parents, of.first},
                of.first == 0 ? LogitsWanted::kLast : LogitsWanted::kAll);
  }
  Model& model = *target->model;
  target_batch_.resume_layer = model.config().layer_count - network_->config().target_layers;
  target_batch_.resumed_rows.resize(static_cast<size_t>(target_batch_.rows()));
  std::iota(target_batch_.resumed_rows.begin(), target_batch_.resumed_rows.end(), 0);
  const std::span<const float> inputs =
      backend_.read(states, target_batch_.rows() * model.config().hidden_size);
  target_batch_.resumed_states.assign(inputs.begin(), inputs.end());
  if (!network_->has_own_output()) return model.forward(target_batch_, *target->cache);
  std::swap(target_batch_.logits_rows, target_batch_.hidden_state_rows);
  model.forward(target_batch_, *target->cache);
  return network_->logits(model.hidden_rows(), std::ssize(target_batch_.hidden_state_rows));
}

}  // namespace

Result<int64_t> moa_tail_layers(const HeadFile& head, const ModelConfig& target) {
  OUTRIDER_TRY(const MoaConfig config, read_moa_config(head, target));
  return config.target_layers;
}

Result<std::shared_ptr<Drafter>> make_moa_drafter(const SpeculativeOptions& options,
                                                  const DrafterContext& context) {
  OUTRIDER_TRY(const HeadFile* head, context.head_for(options));
  const KvShape target = context.target->kv_shape();
  if (target.window != 0 || !target.layers.empty()) {
    return input_error(
        "a Mixture of Attentions reads the keys and values of all tokens in all layers; expected a target "
        "whose layers are alike and have no sliding window, found another; choose another method");
  }
  OUTRIDER_TRY(std::unique_ptr<MoaNetwork> network,
               MoaNetwork::load(*head, *context.target, context.model_options()));
  if (context.is_remote && network->config().target_layers > 0 && !network->config().uses_cross) {
    return head->fail(
        "its drafts run through the last layers of the target without reading its states; expected one with "
        "cross-attention for --server");
  }
  network->reserve(int64_t{context.max_batch} * CachedGrowth::max_staged(options));
  const KvShape shape = CachedGrowth::cache_shape(network->kv_shape(), context.context, options, context);
  return std::shared_ptr<Drafter>(std::make_shared<MoaDrafter>(std::move(network), shape, options, context));
}

}  // namespace outrider
