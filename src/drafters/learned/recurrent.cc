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

namespace outrider {
namespace {

// Entry e of a sequence's cache is that of token e's features and token e + 1, so its tokens are those from
// the second on. Entries of committed tokens are always computed from the target's own features: those of
// drafted ones are given back with the tree.
class RecurrentDrafter final : public Drafter {
 public:
  RecurrentDrafter(std::unique_ptr<RecurrentHead> head, const SpeculativeOptions& options,
                   const DrafterContext& context);

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override;
  void end(uint64_t sequence) override { sequences_.erase(sequence); }
  DrafterMemory memory() const override {
    const KvShape& shape = growth_.cache().shape();
    return {.weight_bytes = head_->weight_bytes(), .cache_bytes = shape.page_count * shape.page_bytes()};
  }

 private:
  struct Sequence : DraftSequence {
    std::vector<float> waiting;  // features of the tokens after those with entries: [row_size] each
    std::vector<float> states;   // [state_size] by staged entry; committed tokens have that of the last alone
    std::vector<float> carried;  // state of the last committed entry, where the head asks for it
    bool is_lost = false;        // features are missing: there is nothing to draft from
  };
  // Result of known_tokens(), kept for the begin() that follows.
  struct Found {
    std::vector<TokenId> tokens;
    uint64_t scope = 0;
    KvSequence kv;
  };

  size_t row_size() const { return static_cast<size_t>(head_->feature_size()); }
  size_t state_size() const { return static_cast<size_t>(head_->state_size()); }
  int64_t waiting_of(const Sequence& sequence) const {
    return static_cast<int64_t>(sequence.waiting.size() / row_size());
  }
  KvSequence open(std::span<const TokenId> tokens, uint64_t scope);
  void take(const CommittedFeatures& committed);
  void run_flush();
  void prepare(const DraftRequest& request, TokenTree& tree);
  std::span<const float> forward(const ForwardBatch& batch, std::span<const CachedGrowth::Rows> rows);
  const float* gather_inputs(std::span<const CachedGrowth::Rows> rows, int64_t count);
  float* reserve_states(int64_t rows);
  const float* commit(Sequence& sequence, size_t count, const float* states);

  DrafterTraits traits_;
  std::unique_ptr<RecurrentHead> head_;
  CachedGrowth growth_;
  size_t max_length_;               // tokens of the longest sequence
  std::vector<float> page_states_;  // [pages, state_size]: the state of the last entry of each full page
  int level_ = 0;                   // level of the current pass
  // Scratch of one call.
  std::vector<DraftRequest> requests_;             // limited to the depth that the head can draft
  std::vector<float> inputs_;                      // [rows, row_size or state_size]
  std::vector<float> carried_;                     // [sequences, state_size]
  std::vector<float> entry_states_;                // [rows, state_size] of level 0, where they are carried
  std::vector<Sequence*> taking_;                  // sequences that take part in the draft or the flush
  std::vector<std::span<const TokenId>> flushed_;  // tokens of each sequence of a flush
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
      head_(std::move(head)),
      growth_(options, context,
              CachedGrowth::cache_shape(head_->kv_shape(), context.context, options, context),
              {.size = context.vocab_size, .mask = head_->masked_place().token}),
      max_length_(static_cast<size_t>(context.context)) {
  // Waiting features are computed together with a chunk.
  const auto rows = static_cast<size_t>(CachedGrowth::max_rows(options, context) +
                                        context.max_batch * (CachedGrowth::kMaxUncached + 1));
  const int width = make_tree_policy(options)->usual_width(largest_tree(options));
  head_->reserve(static_cast<int64_t>(rows), int64_t{context.max_batch} * width);
  inputs_.reserve(rows * std::max(row_size(), state_size()));
  carried_.reserve(static_cast<size_t>(context.max_batch) * state_size());
  if (head_->carries_state()) {
    const int64_t tree_rows = int64_t{context.max_batch} * std::max(CachedGrowth::kMaxUncached + 1, width);
    head_->reserve_trees(static_cast<int64_t>(rows), tree_rows,
                         context.context + CachedGrowth::max_staged(options));
    entry_states_.reserve(rows * state_size());
    page_states_.resize(static_cast<size_t>(growth_.cache().shape().page_count) * state_size());
  }
  path_.resize(rows);
  std::iota(path_.begin(), path_.end(), 0);
  taking_.reserve(static_cast<size_t>(context.max_batch));
  requests_.reserve(static_cast<size_t>(context.max_batch));
  flushed_.reserve(static_cast<size_t>(context.max_batch));
}

// No entry is for the first token, but every entry depends on it: it is part of the scope.
KvSequence RecurrentDrafter::open(std::span<const TokenId> tokens, uint64_t scope) {
  const uint64_t own_scope = mix64(scope) + static_cast<uint64_t>(tokens.front());
  return growth_.cache().open(tokens.subspan(1), own_scope);
}

int64_t RecurrentDrafter::known_tokens(std::span<const TokenId> tokens, uint64_t scope) {
  found_.push_back({.tokens = {tokens.begin(), tokens.end()}, .scope = scope, .kv = open(tokens, scope)});
  return found_.back().kv.length();
}

void RecurrentDrafter::begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) {
  Sequence& state = sequences_[sequence];
  const auto found = std::ranges::find_if(
      found_, [&](const Found& one) { return one.scope == scope && std::ranges::equal(one.tokens, prompt); });
  if (found == found_.end()) {
    state.kv = open(prompt, scope);
  } else {
    state.kv = std::move(found->kv);
    found_.erase(found);
  }
  growth_.reserve(state, static_cast<int64_t>(max_length_));
  state.waiting.reserve((CachedGrowth::kMaxUncached + 1) * row_size());
  state.states.reserve(state.tokens.capacity() * state_size());
  if (!head_->carries_state()) return;
  state.carried.assign(state_size(), 0.0f);
  if (state.kv.length() > 0) {
    const auto last = static_cast<size_t>(
        state.kv.pages()[static_cast<size_t>((state.kv.length() - 1) / growth_.cache().shape().page_size)]);
    std::copy_n(page_states_.data() + last * state_size(), state_size(), state.carried.begin());
  }
}

// Few features wait for the next draft, which computes them with its root; many are computed at once, all but
// the last, which may be the root's.
void RecurrentDrafter::absorb(std::span<const CommittedFeatures> committed) {
  found_.clear();
  growth_.batch().clear();
  inputs_.clear();
  carried_.clear();
  taking_.clear();
  flushed_.clear();
  for (const CommittedFeatures& one : committed) take(one);
  if (!taking_.empty()) run_flush();
}

void RecurrentDrafter::take(const CommittedFeatures& committed) {
  const auto state = sequences_.find(committed.sequence);
  if (state == sequences_.end() || state->second.is_lost || committed.rows.empty()) return;
  Sequence& sequence = state->second;
  const int64_t next = sequence.kv.length() + waiting_of(sequence);
  const int64_t given = committed.first + std::ssize(committed.rows);
  sequence.staged.reset();
  sequence.is_lost = committed.first > next;
  if (sequence.is_lost || given <= next) return;
  const auto append = [&](std::vector<float>& to, int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const std::span<const float> features = committed.at(static_cast<size_t>(token - committed.first));
      to.insert(to.end(), features.begin(), features.end());
    }
  };
  const int64_t total = given - sequence.kv.length();
  if (total <= CachedGrowth::kMaxUncached + 1) return append(sequence.waiting, next, given);
  auto staged = growth_.cache().stage(sequence.kv, static_cast<int>(total - 1));
  sequence.is_lost = !staged.ok();
  if (sequence.is_lost) return;
  sequence.staged = std::move(*staged);
  inputs_.insert(inputs_.end(), sequence.waiting.begin(), sequence.waiting.end());
  append(inputs_, next, given - 1);
  sequence.waiting.clear();
  append(sequence.waiting, given - 1, given);
  carried_.insert(carried_.end(), sequence.carried.begin(), sequence.carried.end());
  taking_.push_back(&sequence);
  flushed_.push_back(committed.tokens.subspan(static_cast<size_t>(sequence.kv.length()) + 1,
                                              static_cast<size_t>(total - 1)));
  append_chain(growth_.batch(), sequence.kv, *sequence.staged, flushed_.back(), LogitsWanted::kNone);
}

void RecurrentDrafter::run_flush() {
  head_->forward({.batch = &growth_.batch(),
                  .cache = &growth_.cache(),
                  .inputs = inputs_.data(),
                  .carried = carried_.data(),
                  .wants_logits = false,
                  .entry_states = reserve_states(growth_.batch().rows())});
  const float* states = entry_states_.data();
  for (size_t i = 0; i < taking_.size(); ++i) {
    Sequence& sequence = *taking_[i];
    sequence.tokens.assign(flushed_[i].begin(), flushed_[i].end());
    states = commit(sequence, flushed_[i].size(), states);
  }
}

// Room for the states of all rows of a pass over committed tokens; null where states are not carried.
float* RecurrentDrafter::reserve_states(int64_t rows) {
  if (!head_->carries_state()) return nullptr;
  entry_states_.resize(static_cast<size_t>(rows) * state_size());
  return entry_states_.data();
}

// Keeps the first `count` staged entries, which belong to committed tokens. `states` are those of these
// entries, where states are carried. Returns the end of these states.
const float* RecurrentDrafter::commit(Sequence& sequence, size_t count, const float* states) {
  while (path_.size() < count) path_.push_back(static_cast<int>(path_.size()));
  sequence.staged->commit(std::span(path_).first(count), std::span(sequence.tokens).first(count));
  sequence.staged.reset();
  if (!head_->carries_state()) return states;
  const auto page_size = static_cast<size_t>(growth_.cache().shape().page_size);
  const size_t first = static_cast<size_t>(sequence.kv.length()) - count;
  for (size_t entry = first; entry < first + count; ++entry, states += state_size()) {
    if ((entry + 1) % page_size != 0) continue;
    const auto page = static_cast<size_t>(sequence.kv.pages()[entry / page_size]);
    std::copy_n(states, state_size(), page_states_.data() + page * state_size());
  }
  std::copy_n(states - state_size(), state_size(), sequence.carried.begin());
  return states;
}

Status RecurrentDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  growth_.start();
  taking_.clear();
  requests_.clear();
  requests_.reserve(requests.size());
  level_ = 0;
  for (size_t i = 0; i < requests.size(); ++i) prepare(requests[i], trees[i]);
  growth_.grow([&](const ForwardBatch& batch, std::span<const CachedGrowth::Rows> rows) {
    return forward(batch, rows);
  });
  const float* states = entry_states_.data();
  for (Sequence* sequence : taking_) {
    states = commit(*sequence, static_cast<size_t>(waiting_of(*sequence)), states);
    sequence->waiting.clear();
  }
  return {};
}

// The sequence takes part if all features up to the token before the pending one are there.
void RecurrentDrafter::prepare(const DraftRequest& request, TokenTree& tree) {
  const auto state = sequences_.find(request.sequence);
  if (state == sequences_.end() || state->second.is_lost) return;
  Sequence& sequence = state->second;
  sequence.staged.reset();
  const int64_t waiting = waiting_of(sequence);
  if (waiting == 0 || sequence.kv.length() + waiting + 1 != std::ssize(request.tokens)) return;
  requests_.push_back(request);
  requests_.back().max_depth = std::min(request.max_depth, head_->max_depth());
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
                      .entry_states = level_ == 0 ? reserve_states(batch.rows()) : nullptr});
  if (head_->masked_place().token) return output.logits;  // no level follows
  for (const CachedGrowth::Rows& one : rows) {
    auto& sequence = static_cast<Sequence&>(*one.sequence);
    const size_t count = sequence.tokens.size();
    const size_t wanted = level_ == 0 ? 1 : count - static_cast<size_t>(one.first);
    sequence.states.resize(count * state_size());
    std::copy_n(output.states + static_cast<size_t>(one.logits_index) * state_size(), wanted * state_size(),
                sequence.states.begin() + static_cast<std::ptrdiff_t>((count - wanted) * state_size()));
  }
  ++level_;
  return output.logits;
}

// Inputs of the rows of a pass: the target's features of committed tokens and the head's own of masked
// places, or the states of the parents of drafted ones.
const float* RecurrentDrafter::gather_inputs(std::span<const CachedGrowth::Rows> rows, int64_t count) {
  inputs_.clear();
  carried_.clear();
  inputs_.reserve(static_cast<size_t>(count) * (level_ == 0 ? row_size() : state_size()));
  const std::vector<float>& masked = head_->masked_place().features;
  for (const CachedGrowth::Rows& one : rows) {
    const auto& sequence = static_cast<const Sequence&>(*one.sequence);
    if (level_ == 0) {
      inputs_.insert(inputs_.end(), sequence.waiting.begin(), sequence.waiting.end());
      carried_.insert(carried_.end(), sequence.carried.begin(), sequence.carried.end());
      for (size_t entry = sequence.parents.size(); entry < sequence.tokens.size(); ++entry)
        inputs_.insert(inputs_.end(), masked.begin(), masked.end());
      continue;
    }
    for (size_t entry = static_cast<size_t>(one.first); entry < sequence.tokens.size(); ++entry) {
      const auto state =
          sequence.states.begin() + sequence.parents[entry] * static_cast<std::ptrdiff_t>(state_size());
      inputs_.insert(inputs_.end(), state, state + static_cast<std::ptrdiff_t>(state_size()));
    }
  }
  return inputs_.data();
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
