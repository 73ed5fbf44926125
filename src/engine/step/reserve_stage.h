// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"

namespace outrider {

// Lets the policy decide who drafts and how much, and stages the KV entries that each sequence may write. It
// does so before drafting, so that a drafter can work in the target's own cache.
class ReserveStage {
 public:
  explicit ReserveStage(const StepParts& parts);

  void run(StepReport& report);
  // Tells the policy of a further step with the plans that run() has made.
  void repeat_plan(const StepReport& report);

 private:
  void plan_drafts(const StepReport& report);
  void limit_lengths(std::span<SequenceStep> steps) const;
  void share_rows(std::span<SequenceStep> steps);
  bool may_cut(const SequenceStep& step) const;

  const StepParts& parts_;
  std::vector<SpeculationPolicy::Draft> drafts_;
};

}  // namespace outrider
