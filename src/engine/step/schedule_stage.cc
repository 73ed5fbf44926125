// SPDX-License-Identifier: Apache-2.0
#include "engine/step/schedule_stage.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "engine/step/retire.h"

namespace outrider {
namespace {

SequencePlan within_request(SequencePlan plan) {
  const RequestSpeculation& asked = plan.sequence->request().speculation;
  if (asked.max_draft_len > 0) plan.max_draft_len = std::min(plan.max_draft_len, asked.max_draft_len);
  if (asked.max_draft_tokens > 0) {
    plan.max_draft_len = std::min(plan.max_draft_len, asked.max_draft_tokens);
    plan.max_nodes = std::min(plan.max_nodes, asked.max_draft_tokens);
  }
  if (asked.max_children == 1) plan.max_nodes = std::min(plan.max_nodes, plan.max_draft_len);  // a chain
  return plan;
}

BatchShape shape_of(std::span<const SequenceStep> steps) {
  BatchShape shape{.rows = 0.0, .context = 0.0, .sequences = 0.0};
  for (const SequenceStep& step : steps) {
    shape.rows += step.plan.rows();
    shape.sequences += step.plan.decodes ? 1 : 0;
    shape.context += step.plan.sequence->kv.length() / static_cast<double>(steps.size());
  }
  return shape;
}

}  // namespace

ScheduleStage::ScheduleStage(const StepParts& parts) : parts_(parts) {
  const auto depth = static_cast<size_t>(parts.limits.max_draft_len) + 1;
  const auto rows = static_cast<size_t>(parts.limits.rows);
  steps_.resize(static_cast<size_t>(parts.limits.max_sequences));
  for (SequenceStep& step : steps_) {
    step.tree.reserve(1 + parts.max_nodes);
    step.verdict.path.reserve(depth);
    step.verdict.tokens.reserve(depth);
    step.verdict.origins.reserve(depth);
    step.verdict.fates.reserve(rows);
    step.verdict.choices.reserve(rows);
  }
}

void ScheduleStage::run(StepReport& report, StepTracer* tracer) {
  const double start_ms = now_ms();
  preempted_.clear();
  const std::span<const SequencePlan> plans = parts_.scheduler->plan(preempted_);
  OUTRIDER_CHECK(plans.size() <= steps_.size());
  for (Sequence* sequence : preempted_) forget(parts_, *sequence);
  if (tracer != nullptr) tracer->start_step(start_ms, plans);
  for (size_t i = 0; i < plans.size(); ++i) open(steps_[i], plans[i]);
  report = {.sequences = std::span(steps_).first(plans.size())};
  report.shape = shape_of(report.sequences);
  report.is_decoding =
      std::ranges::all_of(plans, [](const SequencePlan& plan) { return plan.prefill_tokens == 0; });
}

void ScheduleStage::close() {
  for (SequenceStep& step : steps_) step.transaction.reset();
}

void ScheduleStage::open(SequenceStep& step, const SequencePlan& plan) const {
  const Sequence& sequence = *plan.sequence;
  step.plan = within_request(plan);
  step.rule = sequence.request().speculation.acceptance.value_or(parts_.acceptance);
  step.is_offered = plan.decodes && sequence.is_offered();
  step.is_predicted = plan.decodes && sequence.is_predicted();
  step.tree.reset(sequence.tokens().back());
  step.exits.clear();
}

}  // namespace outrider
