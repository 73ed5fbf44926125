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

#include "engine/sequence.h"
#include "kv/kv_cache.h"

namespace outrider {

struct SchedulerOptions {
  int max_batch = 8;        // sequences that run together
  int max_batch_rows = 0;   // rows of one target pass; at least max_batch
  int prefill_chunk = 256;  // committed tokens computed per step, all sequences together
  int prompt_logits = 32;   // of these with logits, beyond one for every sequence
  int max_draft_depth = 0;
  int max_draft_nodes = 0;
  int max_preemptions = 8;  // of one sequence; then it runs to its end
  int preempt_every = 0;    // steps; for tests: one sequence loses its pages without need; 0: never
  // Of the sequence's tokens, how many may come from the cache; none: all that it has.
  std::function<int64_t(const Sequence&)> max_cached = {};
};

// What one sequence does in one step.
struct SequencePlan {
  Sequence* sequence = nullptr;
  int prefill_tokens = 0;  // committed tokens before the pending one to compute first
  bool decodes = false;    // the pending token is computed too, and the sequence grows
  int draft_depth = 0;     // limits of the tree; 0: nothing is drafted
  int draft_nodes = 0;

  int rows() const { return prefill_tokens + (decodes ? 1 : 0); }  // besides drafts
  // Of the KV cache: what the step may write.
  int entries() const { return rows() + draft_nodes; }
};

// Who runs, and what each does next.
//
// Rows: every running sequence gets one row in every step, its pending token or the next of its prompt; then
// prompts share prefill_chunk, half of it in equal parts and the rest in order; drafts get what is left of
// max_batch_rows. So a running sequence waits for no other: it advances in every step. Prompts whose
// log-probabilities are wanted share prompt_logits besides: their rows need the output head.
//
// Pages: when they run short, first nothing is drafted, then juniors give their pages back and are computed
// again later, which changes nothing but time. Seniority is the order in which sequences first ran. The most
// senior one is never preempted, nor is one that was preempted max_preemptions times: that one comes back
// only when all that is senior to it could grow to full length beside it, so that those who cannot be
// preempted always fit.
//
// Admission: preempted sequences first, by seniority; then the scope (of the KV cache: an API key) with the
// fewest running, and of equals who came first. Who comes next waits for pages; nobody overtakes.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, KvCache* cache);

  void add(std::unique_ptr<Sequence> sequence);
  bool idle() const { return waiting_.empty() && preempted_.empty() && running_.empty(); }
  int running() const { return static_cast<int>(running_.size()); }
  int waiting() const { return static_cast<int>(waiting_.size() + preempted_.size()); }
  // How many of them wait for a place in the batch.
  int queued() const { return waiting() - std::max(0, options_.max_batch - running()); }
  int64_t preemptions() const { return preemptions_; }
  // Of all sequences that have run, and how many of these the cache had.
  int64_t prompt_tokens() const { return prompt_tokens_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  // Pages that the sequence takes at most, drafts left out.
  int64_t pages_for(const Sequence& sequence) const;

  // Admits waiting sequences while there is room, then plans the step. Sequences that lost their pages are
  // listed in `preempted`. The result lives until the next call.
  std::span<const SequencePlan> plan(std::vector<Sequence*>& preempted);
  // Rows that all drafts of the step together may take.
  int draft_rows() const { return draft_rows_; }

  // Null when there is none with this id.
  Sequence* find(RequestId id);
  // Takes a sequence out; null likewise.
  std::unique_ptr<Sequence> remove(RequestId id);

 private:
  struct Entry {
    std::unique_ptr<Sequence> sequence;
    uint64_t seniority = 0;  // smaller: ran earlier; 0: has not run
    int preemptions = 0;
    bool is_counted =
        false;  // in scopes_: runs, or waits for pages that another computes and keeps its place
  };
  using Entries = std::deque<Entry>;

  void admit();
  std::pair<Entries*, size_t> next_to_admit();
  bool fits(const Sequence& sequence) const;
  bool keeps_guarantees(const Entry& entry) const;
  bool awaits_prefix(const Sequence& sequence) const;
  void start(Entry entry);
  void join_scope(Entry& entry);
  void leave_scope(Entry& entry);
  size_t victim() const;
  void preempt(size_t index, std::vector<Sequence*>& preempted);
  void plan_rows();
  void share_prompts();
  void plan_draft(SequencePlan& plan) const;
  int64_t pages_needed() const;

  SchedulerOptions options_;
  KvCache* cache_;
  Entries waiting_;                           // by arrival
  Entries preempted_;                         // by seniority
  std::vector<Entry> running_;                // by seniority
  std::unordered_map<uint64_t, int> scopes_;  // sequences of a scope that run or hold a place
  uint64_t last_seniority_ = 0;
  int64_t preemptions_ = 0;
  int64_t prompt_tokens_ = 0, cached_tokens_ = 0;
  int64_t steps_ = 0;
  int draft_rows_ = 0;
  int prompt_logits_ = 0;            // left, while planning
  std::vector<SequencePlan> plans_;  // of running_, while planning
  std::vector<size_t> prompts_;      // scratch: plans that compute a prompt
};

}  // namespace outrider
