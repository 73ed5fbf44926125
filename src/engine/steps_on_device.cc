// SPDX-License-Identifier: Apache-2.0
// Steps that a device computes one after the other: the stages beside the pass are as in step.cc.
#include "engine/step.h"
#include "engine/step/stopwatch.h"

namespace outrider {

// False: no step has been made.
bool Step::run_on_device() {
  StepReport& report = report_;
  if (!device_.start(report)) return false;
  int steps = 0;
  for (Stopwatch watch; device_.next(report); ++steps) {
    report.times.forward = watch.lap();
    device_.commit(report);
    report.times.commit = watch.lap();
    observe_.run(report, nullptr);
    stream_.run(report);
    watch.lap();
  }
  return steps > 0;
}

}  // namespace outrider
