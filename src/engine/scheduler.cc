// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

// Committed tokens that have no KV entry yet, without the pending one.
int64_t uncomputed(const Sequence& sequence) {
  return static_cast<int64_t>(sequence.tokens().size()) - 1 - sequence.kv.length();
}

// How many tokens may come from the cache. Cached tokens have neither logits nor states, so tokens before a
// wanted log-probability or state are computed.
int64_t cacheable(const Sequence& sequence) {
  if (sequence.pools_all_rows()) return 0;
  const int64_t pending_logprobs = sequence.pending_logprobs();
  return pending_logprobs > 0 ? sequence.prompt_length() - 1 - pending_logprobs
                              : static_cast<int64_t>(sequence.tokens().size());
}

// Whether there is nothing to compute before the next tree is offered.
bool is_parkable(const Sequence& sequence) { return sequence.awaits_tree() && uncomputed(sequence) == 0; }

int64_t length_of_common_beginning(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, KvCache* cache) : options_(options), cache_(cache) {
  OUTRIDER_CHECK(options.max_batch >= 1 && options.max_batch_rows >= options.max_batch);
  const auto batch = static_cast<size_t>(options.max_batch);
  running_.reserve(batch);
  plans_.reserve(batch);
  prompts_.reserve(batch);
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  waiting_.push_back({.sequence = std::move(sequence)});
}

int64_t Scheduler::pages_for(const Sequence& sequence) const {
  return cache_->pages_for(sequence.max_length());
}

bool Scheduler::idle() const {
  const auto rests = [](const Entry& entry) { return is_parkable(*entry.sequence); };
  const auto waits = [](const Entry& entry) { return entry.sequence->awaits_tree(); };
  return waiting_.empty() && preempted_.empty() && std::ranges::all_of(running_, rests) &&
         std::ranges::all_of(parked_, waits);
}

std::span<const SequencePlan> Scheduler::plan(std::vector<Sequence*>& preempted) {
  yield_places(background_places());
  unpark();
  admit(preempted);
  slide(preempted);
  park();
  ++steps_;
  if (options_.preempt_every > 0 && steps_ % options_.preempt_every == 0) {
    if (const size_t index = victim(); index > 0) preempt(index, preempted);
  }
  plan_rows();
  if (pages_needed() > cache_->available_pages() && wanting() > 0 && yield_places(0)) plan_rows();
  while (pages_needed() > cache_->available_pages() && reclaim(preempted)) {
  }
  if (pages_needed() > cache_->available_pages()) {
    for (SequencePlan& plan : plans_) plan.max_draft_len = plan.max_nodes = 0;
  }
  while (pages_needed() > cache_->available_pages()) {
    const size_t index = victim();
    OUTRIDER_CHECK(index > 0);  // sequences that may not be preempted fit
    preempt(index, preempted);
    plans_.erase(plans_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return plans_;
}

int Scheduler::undisturbed_steps() const {
  if (waiting() > 0 && running() < options_.max_batch) return 1;  // the next plan may admit one
  const int every = options_.preempt_every;
  return every == 0 ? std::numeric_limits<int>::max() : every - static_cast<int>(steps_ % every);
}

int Scheduler::wanting() const {
  const auto count = [](const auto& entries, auto&& rests) {
    return static_cast<int>(std::ranges::count_if(entries, [&](const Entry& entry) {
      return !entry.sequence->is_background() && !rests(*entry.sequence);
    }));
  };
  // Parked sequences rest until their trees are there, also without their pages.
  const auto awaits_tree = [](const Sequence& sequence) { return sequence.awaits_tree(); };
  return count(waiting_, is_parkable) + count(preempted_, is_parkable) + count(running_, is_parkable) +
         count(parked_, awaits_tree);
}

int Scheduler::background_places() const {
  const int others = wanting();
  if (others == 0) return options_.max_batch;
  return std::clamp(options_.max_batch - others, 0, options_.background_beside);
}

int Scheduler::background_running() const {
  return static_cast<int>(
      std::ranges::count_if(running_, [](const Entry& entry) { return entry.sequence->is_background(); }));
}

// Index of the most junior sequence that may lose its pages; 0, the most senior one, if there is none.
size_t Scheduler::victim() const {
  for (size_t i = running_.size(); i-- > 1;) {
    if (running_[i].preemptions < options_.max_preemptions) return i;
  }
  return 0;
}

void Scheduler::park() {
  for (size_t i = 0; i < running_.size();) {
    if (is_parkable(*running_[i].sequence)) {
      park(i);
    } else {
      ++i;
    }
  }
}

void Scheduler::park(size_t index) {
  leave_scope(running_[index]);
  parked_.push_back(std::move(running_[index]));
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
}

// Parks the most junior sequences in the background, so that `places` of them run. False: no more did.
bool Scheduler::yield_places(int places) {
  int surplus = background_running() - places;
  const bool yields = surplus > 0;
  for (size_t i = running_.size(); i-- > 0 && surplus > 0;) {
    if (!running_[i].sequence->is_background()) continue;
    park(i);
    --surplus;
  }
  return yields;
}

// Brings back the sequences with trees that are there, while the batch has places. Sequences without pages
// are admitted like preempted ones.
void Scheduler::unpark() {
  const int background = background_places();
  for (size_t i = 0; i < parked_.size();) {
    const Sequence& sequence = *parked_[i].sequence;
    const bool has_place = !sequence.is_background() || background_running() < background;
    const bool is_ready = has_place && !sequence.awaits_tree() && keeps_guarantees(parked_[i]);
    if (!is_ready || (parked_[i].has_pages && running() >= options_.max_batch)) {
      ++i;
      continue;
    }
    Entry& entry = parked_[i];
    if (entry.has_pages) {
      join_scope(entry);
      insert_by_seniority(running_, entry);
    } else {
      insert_by_seniority(preempted_, entry);
    }
    parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Takes pages that wait for a sequence, or the pages of the sequence that has been parked longest. False:
// none has pages.
bool Scheduler::reclaim(std::vector<Sequence*>& preempted) {
  if (options_.restorer != nullptr && options_.restorer->release()) return true;
  const auto found = std::ranges::find_if(parked_, &Entry::has_pages);
  if (found == parked_.end()) return false;
  if (found->sequence->is_background()) preempted.push_back(found->sequence.get());
  found->sequence->kv = KvSequence();
  found->has_pages = false;
  return true;
}

void Scheduler::preempt(size_t index, std::vector<Sequence*>& preempted) {
  ++running_[index].preemptions;
  ++preemptions_;
  take_pages(index, preempted);
}

// Sequences that have filled the context come back in the next step.
void Scheduler::slide(std::vector<Sequence*>& preempted) {
  for (size_t i = running_.size(); i-- > 0;) {
    if (running_[i].sequence->is_full()) take_pages(i, preempted);
  }
}

void Scheduler::take_pages(size_t index, std::vector<Sequence*>& preempted) {
  Entry& entry = running_[index];
  preempted.push_back(entry.sequence.get());
  entry.sequence->kv = KvSequence();
  entry.has_pages = false;
  leave_scope(entry);
  insert_by_seniority(preempted_, entry);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Scheduler::admit(std::vector<Sequence*>& preempted) {
  for (Entries* queue : {&preempted_, &waiting_}) {
    for (Entry& entry : *queue) {
      if (entry.is_counted) leave_scope(entry);
    }
  }
  const int background = background_places();
  for (int places = options_.max_batch - running(); places > 0; --places) {
    auto [queue, index] = next_to_admit(/*in_background=*/false);
    if (queue == nullptr && background_running() < background)
      std::tie(queue, index) = next_to_admit(/*in_background=*/true);
    if (queue == nullptr) return;
    Entry& entry = (*queue)[index];
    if (awaits_prefix(*entry.sequence)) {
      join_scope(entry);
      continue;
    }
    const bool comes_first = !entry.sequence->is_background();
    while (!fits(*entry.sequence)) {
      if (!reclaim(preempted) && !(comes_first && yield_places(0))) return;
    }
    if (!keeps_guarantees(entry) && !(comes_first && yield_places(0) && keeps_guarantees(entry))) return;
    if (restores(*entry.sequence)) {
      join_scope(entry);
      continue;
    }
    start(entry);
    insert_by_seniority(running_, entry);
    queue->erase(queue->begin() + static_cast<std::ptrdiff_t>(index));
  }
}

std::pair<Scheduler::Entries*, size_t> Scheduler::next_to_admit(bool in_background) {
  const auto is_next = [=](const Entry& entry) {
    return !entry.is_counted && entry.sequence->is_background() == in_background;
  };
  for (size_t i = 0; i < preempted_.size(); ++i) {
    if (is_next(preempted_[i])) return {&preempted_, i};
  }
  int fewest = std::numeric_limits<int>::max();
  size_t best = 0;
  for (size_t i = 0; i < waiting_.size() && fewest > 0; ++i) {
    if (!is_next(waiting_[i])) continue;
    const auto scope = scopes_.find(waiting_[i].sequence->request().cache_scope);
    const int others = scope == scopes_.end() ? 0 : scope->second;
    if (others >= fewest) continue;
    fewest = others;
    best = i;
  }
  if (fewest == std::numeric_limits<int>::max()) return {nullptr, 0};
  return {&waiting_, best};
}

// Whether there are pages for its tokens beside the pages that the running sequences need for their prompts
// and for a step or two.
bool Scheduler::fits(const Sequence& sequence) const {
  if (running_.empty()) return true;
  const KvCache::Cached cached = cache_->find(sequence.tokens(), sequence.scope());
  const auto length = static_cast<int64_t>(sequence.tokens().size());
  int64_t needed = cached.idle_pages + cache_->pages_for(length) - cache_->pages_for(cached.length);
  for (const Entry& entry : running_) {
    const int64_t entries = uncomputed(*entry.sequence) + 1 + most_nodes(*entry.sequence);
    needed += cache_->pages_needed(entry.sequence->kv, static_cast<int>(entries)) + 1;
  }
  return needed <= cache_->available_pages();
}

// Sequences that cannot be preempted, and all that are senior to one of them, must be able to grow to full
// length side by side. Returns whether that still holds with `entry`.
bool Scheduler::keeps_guarantees(const Entry& entry) const {
  const uint64_t seniority = entry.seniority == 0 ? last_seniority_ + 1 : entry.seniority;
  uint64_t last = entry.preemptions >= options_.max_preemptions ? seniority : 0;
  for (const Entry& other : running_) {
    if (other.preemptions >= options_.max_preemptions) last = std::max(last, other.seniority);
  }
  if (seniority > last) return true;
  int64_t pages = pages_for(*entry.sequence);
  for (const Entry& other : running_) {
    if (other.seniority <= last) pages += pages_for(*other.sequence);
  }
  return pages <= cache_->shape().page_count;
}

// Whether a running sequence is about to compute pages that this one begins with, and enough of them to be
// worth the wait. The wait ends when they are computed or when that sequence no longer runs.
bool Scheduler::awaits_prefix(const Sequence& sequence) const {
  constexpr int64_t kMinShare = 4;  // a quarter of the tokens left to compute is worth the wait
  const bool needs_all_rows = sequence.pending_logprobs() > 0 || sequence.pools_all_rows();
  if (needs_all_rows || cache_->shape().states.layer_count > 0) return false;
  const std::span<const TokenId> tokens = sequence.tokens();
  const auto page_size = int64_t{cache_->shape().page_size};
  int64_t shared = 0;
  for (const Entry& entry : running_) {
    const Sequence& other = *entry.sequence;
    if (uncomputed(other) == 0 || other.scope() != sequence.scope()) continue;
    if (other.is_background() && !sequence.is_background()) continue;
    const int64_t common = length_of_common_beginning(tokens, other.tokens());
    const int64_t pages = std::min<int64_t>(common, static_cast<int64_t>(tokens.size()) - 1) / page_size;
    if (other.kv.length() < pages * page_size) shared = std::max(shared, pages * page_size);
  }
  if (shared == 0) return false;
  const int64_t cached = cache_->find(tokens, sequence.scope()).length;
  const int64_t saved = shared - cached;
  return saved > 0 && saved * kMinShare >= static_cast<int64_t>(tokens.size()) - cached;
}

// Whether pages of the sequence are still to come from elsewhere. Its place is kept for it.
bool Scheduler::restores(const Sequence& sequence) const {
  const bool needs_all_rows = sequence.pending_logprobs() > 0 || sequence.pools_all_rows();
  return options_.restorer != nullptr && !needs_all_rows &&
         options_.restorer->restore(sequence, running_.empty());
}

// Gives the sequence its pages. Where there is no memory for that it stays as it is.
void Scheduler::start(Entry& entry) {
  Sequence& sequence = *entry.sequence;
  if (sequence.is_full()) sequence.slide();
  KvSequence cached = cache_->open(sequence.tokens(), sequence.scope());
  int64_t max = cacheable(sequence);
  if (options_.max_cached) max = std::min(max, options_.max_cached(sequence));
  if (max < cached.length()) cache_->rewind(cached, static_cast<int32_t>(max));
  cached.reserve(sequence.max_length() + 1 + most_nodes(sequence));
  join_scope(entry);
  sequence.admit(std::move(cached));
  entry.has_pages = true;
  if (options_.restorer != nullptr) options_.restorer->release(sequence.id());
  if (entry.seniority == 0) {
    entry.seniority = ++last_seniority_;
    prompt_tokens_ += sequence.prompt_length();
    cached_tokens_ += sequence.kv.length();
  }
}

void Scheduler::join_scope(Entry& entry) {
  ++scopes_[entry.sequence->request().cache_scope];
  entry.is_counted = true;
}

void Scheduler::leave_scope(Entry& entry) {
  entry.is_counted = false;
  const auto scope = scopes_.find(entry.sequence->request().cache_scope);
  if (--scope->second == 0) scopes_.erase(scope);
}

void Scheduler::plan_rows() {
  plans_.clear();
  prompts_.clear();
  for (const Entry& entry : running_) {
    const int64_t left = uncomputed(*entry.sequence);
    if (left > 0) prompts_.push_back(plans_.size());
    plans_.push_back(
        {.sequence = entry.sequence.get(), .prefill_tokens = left > 0 ? 1 : 0, .decodes = left == 0});
  }
  draft_rows_ = options_.max_batch_rows - running();
  if (!prompts_.empty()) share_prompts();
  for (SequencePlan& plan : plans_) {
    if (plan.prefill_tokens == 0) plan_draft(plan);
  }
}

// The tokens after which the next chunk of a prompt ends, so that a checkpoint of the state can be made. It
// ends where other prompts' text ends, and at the end of its last full page. It costs a pass, so that it has
// to save some rows.
int64_t Scheduler::chunk_limit(const Sequence& sequence) const {
  constexpr int64_t kMinTokens = 64;
  int64_t limit = std::numeric_limits<int64_t>::max();
  if (cache_->shape().states.checkpoint_count == 0) return limit;
  const int64_t page_size = cache_->shape().page_size;
  const int64_t last_page_end = (std::ssize(sequence.tokens()) - 1) / page_size * page_size;
  for (const int64_t end : {int64_t{sequence.kv.branch()}, last_page_end}) {
    if (end > sequence.kv.length() && end >= sequence.kv.checkpointed() + kMinTokens)
      limit = std::min(limit, end - sequence.kv.length());
  }
  return limit;
}

// Half of the rows go to prompts in equal parts, so that short prompts are soon done; the rest goes to the
// most senior ones, so that long prompts get done one after another.
void Scheduler::share_prompts() {
  const auto left = [&](size_t i) {
    const Sequence& sequence = *plans_[i].sequence;
    const int64_t rows = std::min(uncomputed(sequence), chunk_limit(sequence)) - plans_[i].prefill_tokens;
    return static_cast<int>(std::min<int64_t>(rows, std::numeric_limits<int>::max()));
  };
  const auto wants_logits = [&](size_t i) { return plans_[i].sequence->pending_logprobs() > 0; };
  prompt_logits_ = options_.prompt_logits;
  const auto count = static_cast<int>(prompts_.size());
  int chunk = std::clamp(options_.prefill_chunk - count, 0, draft_rows_);
  int equal = chunk / 2;
  const auto give = [&](size_t i, int max) {
    int rows = std::min(max, left(i));
    if (wants_logits(i)) rows = std::min(rows, prompt_logits_);
    if (wants_logits(i)) prompt_logits_ -= rows;
    plans_[i].prefill_tokens += rows;
    chunk -= rows;
    draft_rows_ -= rows;
    return rows;
  };
  std::ranges::sort(prompts_, {}, left);
  for (int i = 0; i < count; ++i) equal -= give(prompts_[static_cast<size_t>(i)], equal / (count - i));
  std::ranges::sort(prompts_);
  for (const size_t i : prompts_) give(i, chunk);
  for (const size_t i : prompts_) {
    const bool has_logits = !wants_logits(i) || prompt_logits_ > 0;
    const Sequence& sequence = *plans_[i].sequence;
    const bool is_whole =
        plans_[i].prefill_tokens == uncomputed(sequence) && plans_[i].prefill_tokens < chunk_limit(sequence);
    plans_[i].decodes = is_whole && draft_rows_ > 0 && has_logits && !sequence.ends_with_prompt() &&
                        !sequence.is_offered();  // its first token comes with its first tree
    draft_rows_ -= plans_[i].decodes ? 1 : 0;
    prompt_logits_ -= plans_[i].decodes && wants_logits(i) ? 1 : 0;
  }
}

void Scheduler::plan_draft(SequencePlan& plan) const {
  if (!plan.sequence->request().speculation.enabled) return;
  const DraftLimits tree = tree_of(*plan.sequence);
  plan.max_nodes = std::min(tree.max_nodes, draft_rows_);
  // The last token committed always comes from the target, so one less than what fits is worth drafting.
  plan.max_draft_len = static_cast<int>(
      std::min<int64_t>({tree.max_draft_len, plan.sequence->remaining() - 1, plan.max_nodes}));
  if (plan.max_draft_len <= 0) plan.max_draft_len = plan.max_nodes = 0;
  if (plan.sequence->is_predicted()) plan.max_nodes = plan.max_draft_len;
}

DraftLimits Scheduler::tree_of(const Sequence& sequence) const {
  if (sequence.is_offered()) return {options_.offered_nodes, options_.offered_nodes};
  const PredictedText* prediction = sequence.prediction();
  if (prediction == nullptr) return {options_.max_draft_len, options_.max_nodes};
  if (prediction->is_looking()) return {};
  if (!sequence.is_predicted()) return {options_.max_draft_len, options_.max_nodes};
  const int levels =
      static_cast<int>(std::min(prediction->next().size(), static_cast<size_t>(options_.max_predicted)));
  return {levels, levels};
}

int Scheduler::most_nodes(const Sequence& sequence) const {
  if (sequence.is_offered()) return options_.offered_nodes;
  return sequence.prediction() == nullptr ? options_.max_nodes
                                          : std::max(options_.max_nodes, options_.max_predicted);
}

int64_t Scheduler::pages_needed() const {
  int64_t pages = 0;
  for (const SequencePlan& plan : plans_) pages += cache_->pages_needed(plan.sequence->kv, plan.entries());
  return pages;
}

Sequence* Scheduler::find(RequestId id) {
  const auto search = [id](auto& entries) -> Sequence* {
    const auto found = std::ranges::find(entries, id, [](const Entry& one) { return one.sequence->id(); });
    return found == entries.end() ? nullptr : found->sequence.get();
  };
  if (Sequence* sequence = search(running_)) return sequence;
  if (Sequence* sequence = search(preempted_)) return sequence;
  if (Sequence* sequence = search(parked_)) return sequence;
  return search(waiting_);
}

std::unique_ptr<Sequence> Scheduler::remove(RequestId id) {
  if (options_.restorer != nullptr) options_.restorer->release(id);
  const auto take = [&](auto& entries) -> std::unique_ptr<Sequence> {
    const auto found = std::ranges::find(entries, id, [](const Entry& one) { return one.sequence->id(); });
    if (found == entries.end()) return nullptr;
    if (found->is_counted) leave_scope(*found);
    std::unique_ptr<Sequence> taken = std::move(found->sequence);
    entries.erase(found);
    return taken;
  };
  if (auto taken = take(running_)) return taken;
  if (auto taken = take(preempted_)) return taken;
  if (auto taken = take(parked_)) return taken;
  return take(waiting_);
}

}  // namespace outrider
