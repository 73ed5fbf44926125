// SPDX-License-Identifier: Apache-2.0
#include "engine/step/observe_stage.h"

#include "base/clock.h"
#include "engine/guarded_call.h"

namespace outrider {
namespace {

// Whether the step says how good the drafts of this sequence are.
bool has_outcome(const StepReport& report, const SequenceStep& step) {
  return step.drafts() && !report.draft_failed && !step.verdict.tokens.empty();
}

}  // namespace

ObserveStage::ObserveStage(const StepParts& parts) : parts_(parts) {
  reserve_statistics(totals_.speculation, parts.limits.max_draft_len);
  outcomes_.reserve(static_cast<size_t>(parts.limits.max_sequences));
}

void ObserveStage::run(StepReport& report, StepTracer* tracer) {
  const double start = now_ms();
  add_step(report, parts_.drafter->traits().name, totals_);
  tell_drafter(report);
  report.times.observe = now_ms() - start;
  tell_policy(report);
  if (tracer != nullptr) tracer->observe(report);
}

void ObserveStage::tell_drafter(const StepReport& report) {
  for (const SequenceStep& step : report.sequences) {
    if (!step.asks_drafter() || !has_outcome(report, step)) continue;
    (void)guarded([&] {
      parts_.drafter->observe(step.plan.sequence->id(), step.tree, step.verdict);
      return Status();
    });
  }
}

void ObserveStage::tell_policy(const StepReport& report) {
  const StepTimes& times = report.times;
  const double rest_ms = times.flatten + times.verify + times.commit + times.observe;
  StepObservation observation{.is_decoding = report.is_decoding,
                              .has_drafted = report.drafting > 0,
                              .rows = static_cast<double>(report.rows),
                              .active_experts = static_cast<double>(parts_.target->active_experts()),
                              .pass_ms = times.forward,
                              .rest_ms = rest_ms,
                              .step_ms = times.drafting() + times.forward + rest_ms};
  if (report.drafts_in_pass) {
    observation.draft_ms = std::nullopt;
  } else if (report.drafting > 0) {
    observation.draft_ms = times.drafting() / report.drafting;
  }
  outcomes_.clear();
  for (const SequenceStep& step : report.sequences) {
    if (step.plan.decodes) observation.tokens += static_cast<double>(step.verdict.tokens.size());
    if (has_outcome(report, step))
      outcomes_.push_back({.sequence = step.plan.sequence->id(),
                           .is_predicted = step.is_predicted,
                           .verdict = &step.verdict,
                           .verified = step.tree.drafted()});
  }
  observation.outcomes = outcomes_;
  parts_.policy->observe(observation);
}

}  // namespace outrider
