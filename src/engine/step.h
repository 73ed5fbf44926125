// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "engine/step/commit_stage.h"
#include "engine/step/device_stage.h"
#include "engine/step/draft_stage.h"
#include "engine/step/forward_stage.h"
#include "engine/step/observe_stage.h"
#include "engine/step/reserve_stage.h"
#include "engine/step/schedule_stage.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"
#include "engine/step/stream_stage.h"
#include "engine/step/trace_stage.h"
#include "engine/step/verify_stage.h"

namespace outrider {

// One step of the engine: every running sequence computes more of its prompt or commits at least one token.
// Plain decoding, chains, trees and prompt chunks all go through the same stages (ARCHITECTURE.md, "One
// step"). Where a device computes several steps one after the other, a call makes them all.
class Step {
 public:
  explicit Step(const StepParts& parts) : parts_(parts) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Precondition: the scheduler is not idle.
  void run();
  // Gives back what a step holds that threw.
  void abandon() {
    device_.abandon();
    schedule_.close();
  }

  // Not to be called while run() is under way. An empty sink ends tracing.
  void set_trace_sink(TraceSink sink) { trace_.set_sink(std::move(sink), parts_.vocab_size, *parts_.target); }
  const StepParts& parts() const { return parts_; }
  const StepTotals& totals() const { return observe_.totals(); }

 private:
  bool run_on_device();

  StepParts parts_;
  StepReport report_;  // of the step that runs
  ScheduleStage schedule_{parts_};
  ReserveStage reserve_{parts_};
  DraftStage draft_{parts_};
  DeviceStage device_{parts_, reserve_, draft_};
  FlattenStage flatten_{parts_};
  ForwardStage forward_{parts_};
  VerifyStage verify_{parts_};
  CommitStage commit_{parts_};
  ObserveStage observe_{parts_};
  StreamStage stream_{parts_};
  TraceStage trace_;
};

}  // namespace outrider
