// SPDX-License-Identifier: Apache-2.0
#include "engine/step/stream_stage.h"

#include "engine/step/retire.h"

namespace outrider {

void StreamStage::run(const StepReport& report) {
  for (const SequenceStep& step : report.sequences) {
    Sequence& sequence = *step.plan.sequence;
    if (sequence.finished()) {
      retire(parts_, sequence.id());
    } else if (step.plan.decodes) {
      sequence.publish();
    }
  }
}

}  // namespace outrider
