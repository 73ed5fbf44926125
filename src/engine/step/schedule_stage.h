// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"
#include "engine/step/step_tracer.h"

namespace outrider {

// Asks the scheduler what every running sequence does in this step.
class ScheduleStage {
 public:
  explicit ScheduleStage(const StepParts& parts);

  // Makes `report` ready for a new step. The tracer may be null.
  void run(StepReport& report, StepTracer* tracer);
  // Gives back the staged entries of a step that did not come to its end.
  void close();

 private:
  void open(SequenceStep& step, const SequencePlan& plan) const;

  const StepParts& parts_;
  std::vector<SequenceStep> steps_;  // the first of them are in use; all keep their memory
  std::vector<Sequence*> preempted_;
};

}  // namespace outrider
