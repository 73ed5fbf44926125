// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "drafters/target_access.h"
#include "engine/step/draft_ways.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"
#include "engine/step/step_tracer.h"

namespace outrider {

// Lets the drafter grow the trees of all sequences in one call, checks them, and lets the policy cut them.
class DraftStage {
 public:
  explicit DraftStage(const StepParts& parts);

  // The tracer may be null. Sequences with drafts that are only ordered leave the report; their turn is the
  // next step.
  void run(StepReport& report, StepTracer* tracer);
  // Learns what other ranks should draft meanwhile.
  void observe(const StepReport& report);
  // Tells the drafter of a sequence that it does not know.
  void begin(Sequence& sequence);
  DraftRequest request_of(const SequenceStep& step) const;
  // Lets the policy cut the trees of the sequences that draft.
  void prune(std::span<SequenceStep> steps);

 private:
  uint32_t members_of(std::span<const std::string> methods) const;
  bool may_wait(const SequenceStep& step) const;
  DraftWays* ways_of(const StepReport& report, const StepTracer* tracer);
  void hold(StepReport& report);
  void order(StepReport& report, size_t kept);
  void take_offered(SequenceStep& step, size_t index, StepTracer* tracer) const;
  void take_predicted(SequenceStep& step, size_t index, StepTracer* tracer);
  void ask(SequenceStep& step, bool is_traced);
  void draft(StepReport& report, StepTracer* tracer);
  void take(SequenceStep& step, const DraftRequest& request, TokenTree& drafted) const;

  const StepParts& parts_;
  std::vector<DraftRequest> requests_;
  std::vector<TargetAccess> access_;  // by request
  std::vector<TokenTree> trees_;      // by request; further trees are spare
  TokenTree predicted_;               // scratch of take_predicted()
  std::vector<SpeculationPolicy::Grown> grown_;
  DraftWays together_;         // of steps whose sequences could take turns
  DraftWays apart_;            // of other steps
  DraftWays* ways_ = nullptr;  // of this step; null: no other rank drafts for it
  bool is_failure_logged_ = false;
};

}  // namespace outrider
