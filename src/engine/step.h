// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "drafters/target_access.h"
#include "engine/scheduler.h"
#include "engine/target_walk.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/drafter.h"
#include "sampling/logits_processor.h"
#include "speculation/policy/speculation_policy.h"

namespace outrider {

class StepTracer;

// One step of the engine: draft, one target pass over everything, verify, commit. Plain decoding, chains,
// trees and prompt chunks all go through here.
class Step {
 public:
  struct Parts {
    Model* target = nullptr;
    KvCache* cache = nullptr;
    Drafter* drafter = nullptr;
    SpeculationPolicy* policy = nullptr;
    int64_t vocab_size = 0;                                // ids that may be chosen: [0, vocab_size)
    AcceptanceRule acceptance = AcceptanceRule::kCoupled;  // of sequences that ask for no other
    const SpeculativeOptions* options = nullptr;           // of the lossy rules
    ForwardBatch::Limits limits;                           // of a batch
    int max_nodes = 0;                                     // of a tree, below its root
  };

  explicit Step(const Parts& parts);

  // What all steps did.
  struct Totals {
    int64_t steps = 0;
    int64_t rows = 0;  // of the target passes
    SpeculationStats speculation;
  };

  // draft_rows: that all trees together may take. tracer: follows the step, or null.
  void run(std::span<const SequencePlan> plans, int draft_rows, StepTracer* tracer);
  const Totals& totals() const { return totals_; }

  // The sequence is over, or lost its pages: its drafter may forget it.
  void forget(Sequence& sequence);

 private:
  struct Work {
    SequencePlan plan;
    TokenTree tree;
    std::optional<KvTransaction> transaction;
    TargetAccess access;            // for drafters that use the target
    ExitStates exits;               // what such a drafter left to take up
    int first_row = 0;              // of the batch
    int logits_index = 0;           // of the root's row among the rows with logits
    int prompt_logits_index = 0;    // of the first of the prompt's rows, likewise
    std::vector<int> feature_rows;  // of the batch, by token committed with its entry in this step
    Verdict verdict;
    bool is_dead_end = false;  // the constraint lets nothing come behind the verdict's tokens
  };

  void draft();
  void ask(size_t index);
  void take_trees(std::span<TokenTree> trees);
  const TargetAccess* give_access(Work& work);
  void measure_load();
  void plan_drafts();
  void share_rows();
  bool may_cut(const Sequence& sequence);
  void prune();
  void reserve();
  void flatten();
  void resume(const Work& work, int first_row);
  static int prompt_logits(const Work& work);
  AcceptanceRule rule_of(const Sequence& sequence) const;
  TreeLogits logits_of(const Work& work) const;
  void verify_one(Work& work);
  void list_choices(Work& work);
  void list_logprobs(const Work& work);
  void list_prompt_logprobs(const Work& work);
  void commit_one(Work& work);
  void hand_over_features();
  void observe_one(Work& work);
  void account(double draft_ms, double verify_ms);
  // Of one step, in milliseconds.
  struct Times {
    double start = 0, drafted = 0;  // points in time
    double forward = 0, tracing = 0;
  };
  void observe_times(const Times& times);

  size_t index_of(const Work& work) const { return static_cast<size_t>(&work - work_.data()); }
  std::span<Work> work() { return std::span(work_).first(work_count_); }

  Parts parts_;
  std::vector<Work> work_;  // the first work_count_ are of this step; all keep their memory
  size_t work_count_ = 0;
  ForwardBatch batch_;
  LogitsProcessor distributions_, untruncated_distributions_;
  CoupledChooser chooser_;
  TargetWalk walk_;
  std::span<const float> logits_;  // of this step's pass
  StepTracer* tracer_ = nullptr;   // of the step that runs; mostly none
  Totals totals_;
  BatchShape load_;
  int draft_rows_ = 0;
  double draft_ms_ = 0.0;        // of this step, by each sequence that drafted
  bool wants_features_ = false;  // the drafter does
  bool draft_failed_ = false;
  bool draft_failure_logged_ = false;
  // Scratch of draft() and commit_one().
  std::vector<DraftRequest> requests_;
  std::vector<TokenTree> trees_;  // one per request, and spare ones
  std::vector<size_t> drafting_;  // index into work() of each request
  std::vector<SpeculationPolicy::Draft> drafts_;
  std::vector<SpeculationPolicy::Grown> grown_;
  std::vector<int> path_;
  std::vector<CommittedFeatures> features_;  // scratch of hand_over_features()
};

}  // namespace outrider
