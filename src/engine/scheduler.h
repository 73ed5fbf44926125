// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drafters/registry.h"
#include "engine/sequence.h"
#include "kv/kv_cache.h"

namespace outrider {

// Brings the beginning of a text from elsewhere into the cache before its sequence runs.
class PrefixRestorer {
 public:
  virtual ~PrefixRestorer() = default;
  // Brings a part. True: more is left, so that the sequence waits, and the call is repeated in the next step.
  // Until release() it holds the pages that it has brought. is_alone: nothing else runs meanwhile.
  virtual bool restore(const Sequence& sequence, bool is_alone) = 0;
  // The sequence needs nothing more.
  virtual void release(RequestId id) = 0;
  // Others need the pages. False: it held none.
  virtual bool release() = 0;
};

struct SchedulerOptions {
  int max_batch = 8;        // sequences that run together
  int max_batch_rows = 0;   // rows of one target pass; at least max_batch
  int prefill_chunk = 256;  // prompt tokens computed in one step, all sequences together
  int prompt_logits = 32;   // prompt rows with logits in one step, besides one for every sequence
  int max_draft_len = 0;    // levels of one tree, below its root
  int max_nodes = 0;        // nodes of one tree, below its root
  int offered_nodes = 0;    // nodes and levels of an offered tree, below its root
  int max_predicted = 0;    // levels and nodes of a chain from a prediction
  int max_preemptions = 8;  // a sequence that lost its pages this often runs to its end
  int preempt_every = 0;    // steps after which a sequence loses its pages without need, for tests; 0: never
  int background_beside = 0;  // sequences in the background that run while others want to
  // How many tokens of the sequence may come from the cache. Without it all that the cache has are taken.
  std::function<int64_t(const Sequence&)> max_cached = {};
  PrefixRestorer* restorer = nullptr;  // null: there is none
};

// The part of one sequence in one step.
struct SequencePlan {
  Sequence* sequence = nullptr;
  int prefill_tokens = 0;  // committed tokens before the pending one that are computed now
  bool decodes = false;    // the pending token is computed too, and the sequence grows
  int max_draft_len = 0;   // levels of its tree, below the root; 0: nothing is drafted
  int max_nodes = 0;       // nodes of its tree, below the root

  // Rows of the pass without drafted nodes.
  int rows() const { return prefill_tokens + (decodes ? 1 : 0); }
  // Entries of the KV cache that the step may write.
  int entries() const { return rows() + max_nodes; }
};

// Decides which sequences run, and how much of each is computed in the next step.
//
// Rows: every running sequence gets one row in every step, for its pending token or the next token of its
// prompt, so that no running sequence waits for another. Then prompts share prefill_chunk, half of it in
// equal parts and the rest in order of seniority. Drafts get the rows that are left of max_batch_rows.
// Prompts with wanted log-probabilities also share prompt_logits, because their rows need the output head.
//
// Pages: when they run short, first nothing is drafted, then the most junior sequences are preempted: they
// give their pages back and are computed again later, which changes nothing but time. Seniority is the order
// in which sequences first ran. The most senior sequence is never preempted, nor is one that was preempted
// max_preemptions times. The latter comes back only when every sequence senior to it could grow to full
// length beside it, so that the sequences that cannot be preempted always fit.
//
// Sliding: a sequence that has filled the context gives its pages back, as a preempted one does, and comes
// back with fewer tokens. This does not count as a preemption.
//
// Parking: a sequence leaves the batch once its prompt is computed, if its next tree has not been offered
// yet. It keeps its pages until others need them, the longest parked first, and comes back before any other
// sequence when its tree is there.
//
// Background: while another sequence wants to run, sequences in the background are parked, but for
// background_beside of them in places that are free, and all of them where pages are short. Parked so, they
// come back as places allow.
//
// Admission: preempted sequences come first, by seniority; then a sequence of the scope (of the KV cache: an
// API key) with the fewest running sequences, the earliest of them. The next sequence waits for pages, and
// none overtakes it. A sequence with a beginning that comes from elsewhere holds a place until it is there.
// Sequences in the background come after all others.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, KvCache* cache);

  void add(std::unique_ptr<Sequence> sequence);
  // No sequence is left, or all that are left wait for an offered tree.
  bool idle() const;
  int running() const { return static_cast<int>(running_.size()); }
  int parked() const { return static_cast<int>(parked_.size()); }
  int waiting() const { return static_cast<int>(waiting_.size() + preempted_.size()); }
  // Waiting sequences for which the batch has no place, without those in the background.
  int queued() const { return std::max(0, wanting() - options_.max_batch); }
  int64_t preemptions() const { return preemptions_; }
  // Prompt tokens of all sequences that have run, and how many of these the cache had.
  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  // Pages that the sequence takes at full length, without drafts.
  int64_t pages_for(const Sequence& sequence) const;

  // Admits waiting sequences while there is room, then plans the step. Sequences that lose their pages while
  // they run are added to `preempted`. The result is in order of seniority and lives until the next call; it
  // is empty if the sequences just admitted have nothing to compute before their trees are offered.
  std::span<const SequencePlan> plan(std::vector<Sequence*>& preempted);
  // How many steps in a row may go by the last plan, if no sequence ends or comes, and no page runs short.
  int undisturbed_steps() const;
  // That many more steps have gone by it.
  void repeat_plan(int steps) { steps_ += steps; }
  // Rows that all drafts of the step together may take.
  int draft_rows() const { return draft_rows_; }

  // Takes the sequences that wait for their trees out of the batch, as plan() does at its end.
  void park();

  // The first of the running sequences; null: none runs.
  Sequence* most_senior() { return running_.empty() ? nullptr : running_.front().sequence.get(); }
  // Null when there is none with this id.
  Sequence* find(RequestId id);
  // Takes a sequence out; null when there is none with this id.
  std::unique_ptr<Sequence> remove(RequestId id);

 private:
  struct Entry {
    std::unique_ptr<Sequence> sequence;
    uint64_t seniority = 0;  // 1 for the first sequence that ran; 0 if this one has not run
    int preemptions = 0;
    bool is_counted = false;  // in scopes_: it runs, or keeps a place while another computes pages for it
    bool has_pages = false;   // it runs, or is parked and nobody else needed its pages
  };
  using Entries = std::deque<Entry>;

  // Sequences that want to run in the next step and are not in the background.
  int wanting() const;
  // Sequences in the background that may run in the next step, and those that would.
  int background_places() const;
  int background_running() const;
  void park(size_t index);
  bool yield_places(int places);
  void unpark();
  bool reclaim(std::vector<Sequence*>& preempted);
  void admit(std::vector<Sequence*>& preempted);
  std::pair<Entries*, size_t> next_to_admit(bool in_background);
  bool fits(const Sequence& sequence) const;
  bool keeps_guarantees(const Entry& entry) const;
  bool awaits_prefix(const Sequence& sequence) const;
  bool restores(const Sequence& sequence) const;
  void start(Entry& entry);
  // Moves the entry to its place. Where there is no memory for that it stays where it is.
  template <typename List>
  static void insert_by_seniority(List& entries, Entry& entry) {
    const auto place = std::ranges::upper_bound(entries, entry.seniority, {}, &Entry::seniority);
    *entries.insert(place, Entry()) = std::move(entry);
  }
  void join_scope(Entry& entry);
  void leave_scope(Entry& entry);
  void slide(std::vector<Sequence*>& preempted);
  size_t victim() const;
  void preempt(size_t index, std::vector<Sequence*>& preempted);
  void take_pages(size_t index, std::vector<Sequence*>& preempted);
  void plan_rows();
  void share_prompts();
  int64_t chunk_limit(const Sequence& sequence) const;
  void plan_draft(SequencePlan& plan) const;
  // The largest tree of the sequence in this step, and the nodes of its largest one in any step.
  DraftLimits tree_of(const Sequence& sequence) const;
  int most_nodes(const Sequence& sequence) const;
  int64_t pages_needed() const;

  SchedulerOptions options_;
  KvCache* cache_;
  Entries waiting_;                           // by arrival
  Entries preempted_;                         // by seniority
  Entries parked_;                            // by the time since they are parked, longest first
  std::vector<Entry> running_;                // by seniority
  std::unordered_map<uint64_t, int> scopes_;  // sequences of a scope that run or hold a place
  uint64_t last_seniority_ = 0;
  int64_t preemptions_ = 0;
  int64_t prompt_tokens_ = 0, cached_tokens_ = 0;
  int64_t steps_ = 0;
  int draft_rows_ = 0;
  int prompt_logits_ = 0;            // left in the step that is planned
  std::vector<SequencePlan> plans_;  // by index in running_, while a step is planned
  std::vector<size_t> prompts_;      // indices of the plans that compute a prompt
};

}  // namespace outrider
