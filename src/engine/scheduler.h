// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "kv/kv_cache.h"

namespace outrider {

struct SchedulerOptions {
  int max_batch = 8;        // sequences that run together
  int prefill_chunk = 256;  // committed tokens computed per step, all sequences together
  int max_draft_depth = 0;
  int max_draft_nodes = 0;
};

// What one sequence does in one step.
struct SequencePlan {
  Sequence* sequence = nullptr;
  int catch_up = 0;      // committed tokens before the pending one to compute first
  bool extends = false;  // the pending token is computed too, and the sequence grows
  int draft_depth = 0;   // limits of the tree; 0: nothing is drafted
  int draft_nodes = 0;

  // Of the KV cache: what the step may write.
  int entries() const { return catch_up + (extends ? 1 + draft_nodes : 0); }
};

// Who runs, and what each does next. Sequences are served in the order they came; when pages run short, the
// ones that came last give theirs back and are computed again later, which changes nothing but time.
class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, KvCache* cache) : options_(options), cache_(cache) {}

  void add(std::unique_ptr<Sequence> sequence) { waiting_.push_back(std::move(sequence)); }
  bool idle() const { return waiting_.empty() && running_.empty(); }

  // Admits waiting sequences while there is room, then plans the step. Sequences that lost their pages are
  // listed in `preempted`.
  // The result lives until the next call.
  std::span<const SequencePlan> plan(std::vector<Sequence*>& preempted);

  // Null when there is none with this id.
  Sequence* find(RequestId id);
  // Takes a sequence out; null likewise.
  std::unique_ptr<Sequence> remove(RequestId id);

 private:
  void admit();
  SequencePlan plan_one(Sequence& sequence, int& chunk_left) const;

  SchedulerOptions options_;
  KvCache* cache_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // by arrival
  std::vector<SequencePlan> plans_;
};

}  // namespace outrider
