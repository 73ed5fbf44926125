// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "drafters/target_access.h"
#include "engine/scheduler.h"
#include "kv/kv_cache.h"
#include "outrider/drafter.h"
#include "outrider/token_tree.h"
#include "speculation/policy/step_costs.h"

namespace outrider {

// The part of one sequence in one step.
struct SequenceStep {
  // Filled in by schedule:
  SequencePlan plan;  // the scheduler's, within the request's own limits
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  bool is_offered = false;    // the tree was offered, and neither drafter nor policy is asked
  bool is_predicted = false;  // the tree comes from the request's prediction, and the drafter is not asked
  // Filled in by reserve, which also narrows the limits of the plan's tree:
  bool may_cut = false;      // the policy cuts this tree after it is drafted
  double rate = 0.0;         // see DraftRequest::rate
  double row_ms = 0.0;       // see DraftRequest::row_ms
  bool is_left_out = false;  // the policy lets it draft nothing
  const AcceptanceEstimates* estimates = nullptr;
  std::optional<KvTransaction> transaction;  // until commit
  // Filled in by draft:
  TokenTree tree;    // as it is verified; only the pending token where nothing was drafted
  ExitStates exits;  // rows of the tree that the drafter took through the target's first layers
  // Filled in by flatten:
  int first_row = 0;          // row of the sequence's first entry in the batch
  int logits_row = 0;         // row of the tree's root among the rows with logits
  int prompt_logits = 0;      // prompt rows with logits
  int prompt_logits_row = 0;  // first of them among the rows with logits
  int states = 0;             // rows with states that the request pools
  int states_row = 0;         // first of them among the rows with states
  // Filled in by verify; commit drops the nodes and tokens past the end of the sequence:
  Verdict verdict;           // valid where the plan decodes
  bool is_dead_end = false;  // nothing allows a token after the verdict's
  int failed_depth = -1;     // of the first node after which the request's function of logits failed

  // Whether a tree is drafted, and whether the drafter is asked for it; valid from reserve on.
  bool drafts() const { return plan.max_draft_len > 0 && !is_offered; }
  bool asks_drafter() const { return drafts() && !is_predicted; }
};

// Milliseconds that the stages of one step took.
struct StepTimes {
  double reserve = 0.0;
  double draft = 0.0;
  double flatten = 0.0;
  double forward = 0.0;
  double verify = 0.0;  // without following nodes for a trace
  double commit = 0.0;
  double observe = 0.0;  // statistics and the drafter's observation

  // The time before the target takes part.
  double drafting() const { return reserve + draft; }
  // The time from the batch to the committed tokens.
  double verifying() const { return flatten + forward + verify + commit; }
};

// The record of one step. The stages fill it in; at the end the statistics, the drafter, the policy and the
// tracer observe it.
struct StepReport {
  std::span<SequenceStep> sequences = {};  // by seniority
  BatchShape shape = {};                   // what the step computes without drafts
  bool is_decoding = false;                // no row computes a prompt, and no draft takes time in the pass
  int drafting = 0;                        // sequences that drafted
  bool draft_failed = false;               // the drafter returned an error or threw
  bool drafts_in_pass = false;             // the target's device drafts, and nobody knows for how long
  int rows = 0;                            // rows of the forward pass
  StepTimes times = {};
};

}  // namespace outrider
