// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/step/statistics.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"
#include "engine/step/step_tracer.h"

namespace outrider {

// Tells everyone who keeps account what the step did: the statistics, the drafter, the policy and the tracer.
class ObserveStage {
 public:
  explicit ObserveStage(const StepParts& parts);

  // The tracer may be null.
  void run(StepReport& report, StepTracer* tracer);
  const StepTotals& totals() const { return totals_; }

 private:
  void tell_drafter(const StepReport& report);
  void tell_policy(const StepReport& report);

  const StepParts& parts_;
  StepTotals totals_;
  std::vector<DraftOutcome> outcomes_;
};

}  // namespace outrider
