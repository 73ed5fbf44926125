// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/recurrent.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "config/methods.h"
#include "draft_heads/eagle.h"
#include "draft_heads/eagle3.h"
#include "draft_heads/mtp/mtp.h"
#include "draft_heads/recurrent_head.h"
#include "drafters/cached_growth.h"
#include "drafters/device_trees.h"
#include "drafters/learned/context_pass.h"
#include "drafters/learned/feature_store.h"

namespace outrider {
namespace {

// No entry is for the first token, but every entry depends on it: it is part of the scope.
uint64_t own_scope(std::span<const TokenId> tokens, uint64_t scope) {
  return mix64(scope) + static_cast<uint64_t>(tokens.front());
}

// Entry e of a sequence's cache belongs to token e's features and token e + 1, so its tokens begin with the
// second one. Entries of committed tokens are always computed from the target's own features: entries of
// drafted ones are given back with the tree.
class RecurrentDrafter final : public Drafter, private DeviceDraft {
 public:
  RecurrentDrafter(std::unique_ptr<RecurrentHead> head, const SpeculativeOptions& options,
                   const DrafterContext& context);

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override;
  void end(uint64_t sequence) override { sequences_.erase(sequence); }
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) override {
    return disk_ && disk_->restore(sequence, tokens.subspan(1), own_scope(tokens, scope), limit_ms);
  }
  bool save(bool everything) override { return disk_ && disk_->save(everything); }
  DrafterMemory memory() const override {
    return {.weight_bytes = head_->weight_bytes(),
            .cache_bytes = growth_.cache().shape().total_bytes() + store_.bytes()};
  }
  DeviceDraft* device_draft() override { return has_device_form_ ? this : nullptr; }

 private:
  Status reserve(const Shape& shape) override;
  int max_levels() const override { return head_->max_draft_len(); }
  bool takes(const DraftRequest& request) const override { return device_growth_.takes(request); }
  bool has_branches() const override { return device_growth_.has_branches(); }
  bool start(std::span<const Row> rows) override;
  void record(const simt::Trees& trees, DeviceList& list) override;
  void record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) override;
  int64_t moves() const override { return device_->moves() + (second_ != nullptr ? second_->moves() : 0); }
  void finish(uint64_t sequence, std::span<const TokenId> tokens) override;

  struct Sequence : DraftSequence {
    explicit Sequence(LayerBackend& backend) : states(backend), carried(backend) {}

    FeatureStore::Waiting waiting;  // features of the tokens after the ones with entries
    BackendRows states;             // [state_size] by staged entry; only the last committed token has one
    BackendRows carried;            // state of the last committed entry, where the head asks for it
    std::optional<KvTransaction> kept = {};  // features that a device keeps in its steps
    int64_t row = 0;                         // in the device's run
  };
  using Context = ContextPass<Sequence>;
  // Result of known_tokens(), kept for the begin() that follows.
  struct Found {
    std::vector<TokenId> tokens;
    uint64_t scope = 0;
    KvSequence kv;
    FeatureStore::Waiting waiting;
  };

  int64_t row_size() const { return head_->feature_size(); }
  int64_t state_size() const { return head_->state_size(); }
  // to[rows, state_size] = from
  void copy_states(FloatAddress from, FloatAddress to, int64_t rows) {
    backend_.copy_strided({from, 0, to, 0, 1, rows * state_size()});
  }
  int64_t waiting_of(const Sequence& sequence) const { return sequence.waiting.end() - sequence.kv.length(); }
  Found open(std::span<const TokenId> tokens, uint64_t scope);
  void read(Sequence& sequence);
  void finish_reading();
  void compute_context(const ForwardBatch& batch, std::span<const Context::Piece> pieces);
  void prepare(const DraftRequest& request, TokenTree& tree);
  std::span<const float> forward(const ForwardBatch& batch, std::span<const CachedGrowth::Rows> rows);
  FloatAddress gather_inputs(std::span<const CachedGrowth::Rows> rows, int64_t count);
  FloatAddress reserve_states(int64_t rows);
  FloatAddress keep_states(Sequence& sequence, const KvTransaction& staged, size_t count,
                           FloatAddress states);
  void commit_context();
  bool stage_features(Sequence& sequence, const Row& row);
  bool stage_entries(Sequence& sequence, const Row& row);
  RecurrentHead::RecordedChain recorded_chain(int64_t rows);
  void keep_run_states(Sequence& sequence, int64_t end);

  DrafterTraits traits_;
  LayerBackend& backend_;
  std::unique_ptr<RecurrentHead> head_;
  CachedGrowth growth_;
  std::unique_ptr<KvDisk> disk_;  // of its cache; null also where states are carried, which no page holds
  FeatureStore store_;
  Context context_;
  size_t max_length_;        // tokens of the longest sequence
  int64_t vocab_size_;       // ids that may be drafted
  int64_t row_of_logits_;    // logits of a row
  BackendRows page_states_;  // [pages, state_size]: the state of the last entry of each full page
  int level_ = 0;            // level of the current pass
  DeviceGrowth device_growth_;
  bool has_device_form_;
  DeviceBackend* device_ = nullptr;          // the backend, from DeviceDraft::reserve() on
  DeviceBackend* second_ = nullptr;          // the head's own, if it has one
  std::optional<DeviceTrees> device_trees_;  // as device_
  int device_levels_ = 0;                    // of the deepest tree
  // Scratch of one call.
  std::vector<DraftRequest> requests_;  // limited to the depth that the head can draft
  BackendRows inputs_;                  // [rows, row_size or state_size]
  BackendRows carried_;                 // [sequences, state_size]
  BackendRows entry_states_;            // [rows, state_size] of level 0, where they are carried
  std::vector<Sequence*> taking_;       // sequences that take part in the draft, or have read
  std::vector<int> path_;
  std::vector<Found> found_;
  std::unordered_map<uint64_t, Sequence> sequences_;  // destroyed before the cache of their pages
};

RecurrentDrafter::RecurrentDrafter(std::unique_ptr<RecurrentHead> head, const SpeculativeOptions& options,
                                   const DrafterContext& context)
    : traits_{.name = std::string(method_name(options.decoding_type)),
              .emits_probabilities = true,
              .features = head->taps(),
              .states = context.states_of(head->feature_size())},
      backend_(context.target->backend()),
      head_(std::move(head)),
      growth_(options, context,
              CachedGrowth::cache_shape(head_->kv_shape(), context.context, options, context),
              {.size = context.vocab_size, .mask = head_->masked_place().token}, *context.target),
      store_(backend_, head_->feature_size(), growth_.cache().shape(), context.max_batch,
             CachedGrowth::kMaxUncached + 1),
      context_(CachedGrowth::max_rows(options, context)),
      max_length_(static_cast<size_t>(context.context)),
      vocab_size_(context.vocab_size),
      row_of_logits_(context.target->config().vocab_size),
      page_states_(backend_),
      device_growth_(options),
      has_device_form_(device_growth_.is_possible() && head_->can_be_recorded()),
      inputs_(backend_),
      carried_(backend_),
      entry_states_(backend_) {
  const auto rows = static_cast<size_t>(CachedGrowth::max_rows(options, context));
  const int width = make_tree_policy(options)->usual_width(max_tree_nodes(options));
  head_->reserve(static_cast<int64_t>(rows), int64_t{context.max_batch} * width);
  inputs_.reserve(static_cast<int64_t>(rows), std::max(row_size(), state_size()));
  carried_.reserve(context.max_batch, state_size());
  if (head_->carries_state()) {
    const int64_t tree_rows = int64_t{context.max_batch} * std::max(CachedGrowth::kMaxUncached + 1, width);
    head_->reserve_trees(static_cast<int64_t>(rows), tree_rows,
                         context.context + CachedGrowth::max_staged(options));
    entry_states_.reserve(static_cast<int64_t>(rows), state_size());
    page_states_.reserve(growth_.cache().shape().page_count, state_size());
  }
  if (!head_->carries_state())
    disk_ = context.open_disk(growth_.cache(), options.decoding_type, context.files->head_file()->file);
  path_.resize(CachedGrowth::kMaxUncached + 1);
  std::iota(path_.begin(), path_.end(), 0);
  taking_.reserve(static_cast<size_t>(context.max_batch));
  requests_.reserve(static_cast<size_t>(context.max_batch));
}

RecurrentDrafter::Found RecurrentDrafter::open(std::span<const TokenId> tokens, uint64_t scope) {
  KvSequence kv = growth_.cache().open(tokens.subspan(1), own_scope(tokens, scope));
  const int cached = kv.length();
  return {.tokens = {tokens.begin(), tokens.end()},
          .scope = scope,
          .kv = std::move(kv),
          .waiting = store_.open(tokens, scope, cached)};
}

int64_t RecurrentDrafter::known_tokens(std::span<const TokenId> tokens, uint64_t scope) {
  found_.push_back(open(tokens, scope));
  return found_.back().waiting.end();
}

void RecurrentDrafter::begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) {
  auto found = std::ranges::find_if(
      found_, [&](const Found& one) { return one.scope == scope && std::ranges::equal(one.tokens, prompt); });
  if (found == found_.end()) found = found_.insert(found, open(prompt, scope));
  Sequence& state = sequences_.try_emplace(sequence, backend_).first->second;
  state.kv = std::move(found->kv);
  state.waiting = std::move(found->waiting);
  found_.erase(found);
  if (disk_) disk_->release();
  growth_.reserve(state, static_cast<int64_t>(max_length_));
  state.states.reserve(static_cast<int64_t>(state.tokens.capacity()), state_size());
  if (!head_->carries_state()) return;
  state.carried.reserve(1, state_size());
  backend_.clear(state.carried.data(), state_size());
  if (state.kv.length() > 0) {
    const int32_t last =
        state.kv.pages()[static_cast<size_t>((state.kv.length() - 1) / growth_.cache().shape().page_size)];
    copy_states(page_states_.data() + last * state_size(), state.carried.data(), 1);
  }
}

void RecurrentDrafter::absorb(std::span<const CommittedFeatures> committed) {
  found_.clear();
  store_.absorb(committed, sequences_, [&] {
    for (auto& [id, sequence] : sequences_) read(sequence);
    finish_reading();
  });
}

// Computes the entries of the tokens with features that wait, but for the last, which may be the root's. A
// call of finish_reading() must follow.
void RecurrentDrafter::read(Sequence& sequence) {
  FeatureStore::Waiting& waiting = sequence.waiting;
  const int64_t count = waiting_of(sequence) - 1;
  if (!waiting.is_complete || count <= 0) return;
  sequence.staged.reset();
  taking_.push_back(&sequence);
  const auto first = static_cast<size_t>(sequence.kv.length() - waiting.first);
  const auto tokens = waiting.rows.tokens().subspan(first + 1, static_cast<size_t>(count));
  waiting.is_complete = context_.add(growth_.cache(), sequence, tokens,
                                     [&](const auto& batch, auto pieces) { compute_context(batch, pieces); });
}

void RecurrentDrafter::finish_reading() {
  context_.finish([&](const auto& batch, auto pieces) { compute_context(batch, pieces); });
  for (Sequence* sequence : taking_) store_.drop(sequence->waiting, sequence->kv.length());
  taking_.clear();
}

void RecurrentDrafter::compute_context(const ForwardBatch& batch, std::span<const Context::Piece> pieces) {
  inputs_.reserve(batch.rows(), row_size());
  carried_.reserve(std::ssize(pieces), state_size());
  FloatAddress input = inputs_.data(), carried = carried_.data();
  for (const Context::Piece& piece : pieces) {
    store_.gather(piece.owner->waiting, piece.first, std::ssize(piece.tokens), input);
    input = input + std::ssize(piece.tokens) * row_size();
    if (head_->carries_state()) copy_states(piece.owner->carried.data(), carried, 1);
    carried = carried + state_size();
  }
  head_->forward({.batch = &batch,
                  .cache = &growth_.cache(),
                  .inputs = inputs_.data(),
                  .carried = carried_.data(),
                  .wants_logits = false,
                  .entry_states = reserve_states(batch.rows())});
  FloatAddress states = entry_states_.data();
  for (const Context::Piece& piece : pieces)
    states = keep_states(*piece.owner, piece.transaction, piece.tokens.size(), states);
}

// Room for the states of all rows of a pass over committed tokens; null where states are not carried.
FloatAddress RecurrentDrafter::reserve_states(int64_t rows) {
  if (!head_->carries_state()) return {};
  entry_states_.reserve(rows, state_size());
  return entry_states_.data();
}

// Keeps what later entries need of the states of the first `count` staged ones, which are to be committed,
// where states are carried. Returns the end of these states.
FloatAddress RecurrentDrafter::keep_states(Sequence& sequence, const KvTransaction& staged, size_t count,
                                           FloatAddress states) {
  if (!head_->carries_state()) return states;
  const int page_size = growth_.cache().shape().page_size;
  for (int i = 0; std::cmp_less(i, count); ++i) {
    if ((sequence.kv.length() + i + 1) % page_size != 0) continue;
    const int64_t page = staged.slot(i) / page_size;
    copy_states(states + i * state_size(), page_states_.data() + page * state_size(), 1);
  }
  const FloatAddress end = states + static_cast<int64_t>(count) * state_size();
  copy_states(end + -state_size(), sequence.carried.data(), 1);
  return end;
}

Status RecurrentDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  for (const DraftRequest& request : requests) {
    const auto found = sequences_.find(request.sequence);
    if (found != sequences_.end() && waiting_of(found->second) > CachedGrowth::kMaxUncached + 1)
      read(found->second);
  }
  finish_reading();
  growth_.start();
  requests_.clear();
  requests_.reserve(requests.size());
  level_ = 0;
  for (size_t i = 0; i < requests.size(); ++i) prepare(requests[i], trees[i]);
  growth_.grow([&](const ForwardBatch& batch, std::span<const CachedGrowth::Rows> rows) {
    return forward(batch, rows);
  });
  commit_context();
  return {};
}

// Commits the entries of the tokens that the drafts began with.
void RecurrentDrafter::commit_context() {
  FloatAddress states = entry_states_.data();
  for (Sequence* sequence : taking_) {
    const auto count = static_cast<size_t>(waiting_of(*sequence));
    states = keep_states(*sequence, *sequence->staged, count, states);
    sequence->staged->commit(std::span(path_).first(count), std::span(sequence->tokens).first(count));
    sequence->staged.reset();
    store_.drop(sequence->waiting, sequence->kv.length());
  }
  taking_.clear();
}

// The sequence takes part if all features up to the token before the pending one are there. Few of them are
// computed together with the root.
void RecurrentDrafter::prepare(const DraftRequest& request, TokenTree& tree) {
  const auto state = sequences_.find(request.sequence);
  if (state == sequences_.end() || !state->second.waiting.is_complete) return;
  Sequence& sequence = state->second;
  sequence.staged.reset();
  const int64_t waiting = waiting_of(sequence);
  if (waiting <= 0 || sequence.kv.length() + waiting + 1 != std::ssize(request.tokens)) return;
  requests_.push_back(request);
  requests_.back().max_draft_len = std::min(request.max_draft_len, head_->max_draft_len());
  if (growth_.add(requests_.back(), tree, sequence, request.tokens.last(static_cast<size_t>(waiting))))
    taking_.push_back(&sequence);
}

std::span<const float> RecurrentDrafter::forward(const ForwardBatch& batch,
                                                 std::span<const CachedGrowth::Rows> rows) {
  const RecurrentHead::Output output =
      head_->forward({.batch = &batch,
                      .cache = &growth_.cache(),
                      .level = level_,
                      .inputs = gather_inputs(rows, batch.rows()),
                      .carried = carried_.data(),
                      .entry_states = level_ == 0 ? reserve_states(batch.rows()) : FloatAddress()});
  if (head_->masked_place().token) return output.logits;  // no level follows
  for (const CachedGrowth::Rows& one : rows) {
    auto& sequence = static_cast<Sequence&>(*one.sequence);
    const size_t count = sequence.tokens.size();
    const size_t wanted = level_ == 0 ? 1 : count - static_cast<size_t>(one.first);
    sequence.states.extend(static_cast<int64_t>(count), state_size());
    copy_states(output.states + one.logits_index * state_size(),
                sequence.states.data() + static_cast<int64_t>(count - wanted) * state_size(),
                static_cast<int64_t>(wanted));
  }
  ++level_;
  return output.logits;
}

// Inputs of the rows of a pass: the target's features of committed tokens and the head's own of masked
// places, or the states of the parents of drafted ones.
FloatAddress RecurrentDrafter::gather_inputs(std::span<const CachedGrowth::Rows> rows, int64_t count) {
  inputs_.reserve(count, level_ == 0 ? row_size() : state_size());
  carried_.reserve(std::ssize(rows), state_size());
  FloatAddress input = inputs_.data(), carried = carried_.data();
  const std::vector<float>& masked = head_->masked_place().features;
  for (const CachedGrowth::Rows& one : rows) {
    const auto& sequence = static_cast<const Sequence&>(*one.sequence);
    if (level_ == 0) {
      store_.gather(sequence.waiting, sequence.kv.length(), waiting_of(sequence), input);
      input = input + waiting_of(sequence) * row_size();
      if (head_->carries_state()) copy_states(sequence.carried.data(), carried, 1);
      carried = carried + state_size();
      for (size_t entry = sequence.parents.size(); entry < sequence.tokens.size(); ++entry) {
        backend_.write(masked, input);
        input = input + row_size();
      }
      continue;
    }
    const auto parents = std::span(sequence.parents).subspan(static_cast<size_t>(one.first));
    backend_.copy({sequence.states.data(), state_size(), parents, input, state_size(), state_size()});
    input = input + std::ssize(parents) * state_size();
  }
  return inputs_.data();
}

Status RecurrentDrafter::reserve(const Shape& shape) {
  device_ = dynamic_cast<DeviceBackend*>(&backend_);
  second_ = dynamic_cast<DeviceBackend*>(head_->own_backend());
  if (device_ == nullptr || (second_ == nullptr && head_->own_backend() != nullptr))
    return usage_error("the head is not on a device");
  device_levels_ = shape.max_levels;
  device_trees_.emplace(*device_,
                        DeviceTrees::Network{.vocab_size = vocab_size_,
                                             .row_size = row_of_logits_,
                                             .page_size = growth_.cache().shape().page_size,
                                             .feature_page_size = store_.page_size(),
                                             .carried = head_->carries_state() ? state_size() : 0,
                                             .second = second_},
                        device_growth_, shape);
  return {};
}

bool RecurrentDrafter::start(std::span<const Row> rows) {
  const auto find = [&](const Row& row) {
    const auto found = sequences_.find(row.request.sequence);
    return found == sequences_.end() ? nullptr : &found->second;
  };
  for (const Row& row : rows) {
    Sequence* sequence = find(row);
    if (sequence != nullptr && row.request.max_draft_len > 0) read(*sequence);
  }
  finish_reading();
  std::vector<DeviceTrees::Row> of_rows(rows.size());
  std::vector<SamplingParams> samplings(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const DraftRequest& request = rows[i].request;
    Sequence* sequence = find(rows[i]);
    if (sequence == nullptr && request.max_draft_len == 0) continue;
    if (sequence != nullptr) sequence->staged.reset();  // of a draft between steps
    if (sequence == nullptr || !stage_features(*sequence, rows[i])) return false;
    if (sequence->kept) of_rows[i].features = {sequence->waiting.rows.pages(), sequence->waiting.first};
    if (request.max_draft_len == 0) continue;
    if (!stage_entries(*sequence, rows[i])) return false;
    sequence->row = static_cast<int64_t>(i);
    if (CarriedStates* const carried = device_trees_->carried())
      copy_states(sequence->carried.data(), carried->of_sequence(sequence->row), 1);
    of_rows[i].pending = static_cast<int>(std::ssize(request.tokens)) - 1;
    samplings[i] = device_growth_.sampling_of(request);
    of_rows[i].pages = {sequence->kv.pages()};
    of_rows[i].choice = {&samplings[i], request.sample_index};
  }
  device_trees_->start(of_rows);
  return true;
}

// A sequence that drafts nothing keeps them, too, as its text may be computed again. False: there is no room.
bool RecurrentDrafter::stage_features(Sequence& sequence, const Row& row) {
  const FeatureStore::Waiting& waiting = sequence.waiting;
  if (!waiting.is_complete || waiting.end() + 1 != std::ssize(row.request.tokens)) return true;
  sequence.kept = store_.stage(sequence.waiting, row.tokens);
  return sequence.kept.has_value();
}

// The features of the token before the pending one wait, and no others.
bool RecurrentDrafter::stage_entries(Sequence& sequence, const Row& row) {
  sequence.staged.reset();
  if (!sequence.kept || waiting_of(sequence) != 1) return false;
  auto staged = growth_.cache().stage(sequence.kv, row.before_last + 1 + device_growth_.expanded_nodes());
  if (!staged.ok()) return false;
  sequence.staged = std::move(*staged);
  return true;
}

void RecurrentDrafter::record(const simt::Trees& trees, DeviceList& list) {
  inputs_.reserve(device_trees_->rows_of(trees.sequences), std::max(row_size(), state_size()));
  const auto gather = [&](int64_t rows) { store_.record_gather(rows, inputs_.data()); };
  const auto forward = [&](const ForwardBatch& batch, int level) {
    const RecurrentHead::RecordedChain chain = recorded_chain(batch.rows());
    const RecurrentHead::Output output =
        head_->forward({.batch = &batch,
                        .cache = &growth_.cache(),
                        .level = level,
                        .inputs = inputs_.data(),
                        .recorded = head_->carries_state() ? &chain : nullptr});
    return DeviceTrees::Output{.logits = output.logit_rows, .states = output.states};
  };
  device_trees_->record(
      trees, list,
      {.forward = forward, .gather = gather, .inputs = inputs_.data(), .state_size = state_size()});
}

RecurrentHead::RecordedChain RecurrentDrafter::recorded_chain(int64_t rows) {
  return {.see_from = [this, rows](int first) { device_trees_->see_from(first, rows); },
          .keep =
              [this, rows](FloatAddress numbers, int64_t dim, int64_t column) {
                device_trees_->carried()->record_keep({numbers, rows, dim, column});
              },
          .bring =
              [this, rows](FloatAddress numbers, int64_t dim, int64_t column) {
                device_trees_->carried()->record_bring({numbers, rows, dim, column});
              }};
}

void RecurrentDrafter::record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) {
  device_trees_->record_features(trees, list, [&](int64_t rows) { store_.record_keep(features, rows); });
}

// Entries are certain before the root of the last step with drafts: at most its chain and token back, and the
// token of a last step without drafts. The features of all tokens before the pending one are there.
void RecurrentDrafter::finish(uint64_t id, std::span<const TokenId> tokens) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  const int64_t pending = std::ssize(tokens) - 1, certain = pending - device_levels_ - 1;
  keep_run_states(sequence, certain - 1);
  commit_run(sequence.staged, sequence.kv.length() + 1, certain, tokens);
  commit_run(sequence.kept, sequence.waiting.end(), pending, tokens);
  store_.drop(sequence.waiting, sequence.kv.length());
}

// Keeps the states of a run's entries before `end`, which are to be committed.
void RecurrentDrafter::keep_run_states(Sequence& sequence, int64_t end) {
  const int64_t count = end - sequence.kv.length();
  CarriedStates* const carried = device_trees_->carried();
  if (carried == nullptr || !sequence.staged || count <= 0) return;
  keep_states(sequence, *sequence.staged, static_cast<size_t>(count),
              carried->of_sequence(sequence.row) + state_size());
}

Result<std::unique_ptr<RecurrentHead>> load_recurrent(const HeadFile& file, const SpeculativeOptions& options,
                                                      const DrafterContext& context) {
  switch (file.method) {
    case Method::kEagle:
      return load_eagle(file, context.target, context.model_options());
    case Method::kEagle3:
    case Method::kPEagle:
      return load_eagle3(file, context.target, context.model_options(), options.eagle3_layers_to_capture);
    default:
      return load_mtp(file, context.target, context.model_options());
  }
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_recurrent_drafter(const SpeculativeOptions& options,
                                                        const DrafterContext& context) {
  OUTRIDER_TRY(const HeadFile* file, context.head_for(options));
  OUTRIDER_TRY(std::unique_ptr<RecurrentHead> head, load_recurrent(*file, options, context));
  return std::shared_ptr<Drafter>(std::make_shared<RecurrentDrafter>(std::move(head), options, context));
}

}  // namespace outrider
