// SPDX-License-Identifier: Apache-2.0
// The loop of the engine, row by row as the table "One step" in ARCHITECTURE.md has it;
// tools/check_architecture.py compares the two.
#include "engine/step.h"

#include "engine/step/stopwatch.h"

namespace outrider {

void Step::run() {
  StepReport& report = report_;
  StepTimes& times = report_.times;
  StepTracer* const tracer = trace_.tracer();

  schedule_.run(report, tracer);
  if (report.sequences.empty()) return;
  Stopwatch watch;
  reserve_.run(report);
  if (tracer == nullptr && run_on_device()) return;
  times.reserve = watch.lap();
  draft_.run(report, tracer);
  times.draft = watch.lap();
  const ForwardBatch& batch = flatten_.run(report);
  times.flatten = watch.lap();
  const LogitRows logits = forward_.run(batch);
  times.forward = watch.lap();
  verify_.run(logits, report, tracer);
  times.verify = watch.lap() - (tracer == nullptr ? 0.0 : tracer->own_ms());
  commit_.run(logits, report);
  times.commit = watch.lap();
  observe_.run(report, tracer);
  draft_.observe(report);
  stream_.run(report);
  trace_.run();
}

}  // namespace outrider
