// SPDX-License-Identifier: Apache-2.0
#include "engine/step/reserve_stage.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace outrider {

ReserveStage::ReserveStage(const StepParts& parts) : parts_(parts) {
  drafts_.reserve(static_cast<size_t>(parts.limits.max_sequences));
}

void ReserveStage::run(StepReport& report) {
  limit_lengths(report.sequences);
  plan_drafts(report);
  share_rows(report.sequences);
  for (SequenceStep& step : report.sequences) {
    report.drafting += step.drafts() ? 1 : 0;
    auto transaction = parts_.cache->stage(step.plan.sequence->kv, step.plan.entries());
    OUTRIDER_CHECK(transaction.ok());  // the scheduler plans within the free pages
    step.transaction = std::move(*transaction);
  }
}

// Narrows all plans to the limits that hold for a batch of this size.
void ReserveStage::limit_lengths(std::span<SequenceStep> steps) const {
  const int longest = parts_.speculation_limits->max_draft_len(static_cast<int>(steps.size()));
  for (SequenceStep& step : steps) {
    if (step.is_offered) continue;
    step.plan.max_draft_len = std::min(step.plan.max_draft_len, longest);
    if (step.plan.max_draft_len == 0) step.plan.max_nodes = 0;
    if (step.is_predicted) step.plan.max_nodes = step.plan.max_draft_len;
  }
}

// Fills drafts_ with the policy's answer for every sequence with a plan that allows a tree.
void ReserveStage::plan_drafts(const StepReport& report) {
  drafts_.clear();
  for (const SequenceStep& step : report.sequences) {
    if (!step.drafts()) continue;
    const Sequence& sequence = *step.plan.sequence;
    drafts_.push_back({.sequence = sequence.id(),
                       .is_predicted = step.is_predicted,
                       .tokens = std::ssize(sequence.tokens()),
                       .max_draft_len = step.plan.max_draft_len,
                       .is_auto = sequence.request().speculation.is_auto});
  }
  parts_.policy->plan(report.shape, drafts_, parts_.scheduler->draft_rows());
}

void ReserveStage::repeat_plan(const StepReport& report) {
  auto next = drafts_.begin();
  for (const SequenceStep& step : report.sequences) {
    if (next == drafts_.end() || next->sequence != step.plan.sequence->id()) continue;
    next->tokens = std::ssize(step.plan.sequence->tokens());
    next->max_draft_len = step.plan.max_draft_len;
    ++next;
  }
  if (!drafts_.empty()) parts_.policy->repeat(report.shape, drafts_);
}

// Trees that cannot be cut after they are grown get equal parts of the rows that drafts may take; so do
// offered ones.
void ReserveStage::share_rows(std::span<SequenceStep> steps) {
  const auto drafting =
      std::ranges::count_if(drafts_, [](const auto& draft) { return draft.max_draft_len > 0; }) +
      std::ranges::count_if(steps, &SequenceStep::is_offered);
  auto next = drafts_.begin();
  for (SequenceStep& step : steps) {
    SequencePlan& plan = step.plan;
    step.is_left_out = false;
    if (step.is_offered) {
      const int share = parts_.scheduler->draft_rows() / static_cast<int>(drafting);
      plan.max_nodes = std::min({plan.max_nodes, plan.sequence->offered->drafted(), share});
    }
    if (!step.drafts()) continue;
    SpeculationPolicy::Draft& draft = *next++;
    step.is_left_out = draft.max_draft_len == 0;
    step.may_cut = may_cut(step);
    if (draft.max_draft_len > 0 && !step.may_cut) {
      plan.max_nodes = std::min(plan.max_nodes, parts_.scheduler->draft_rows() / static_cast<int>(drafting));
      draft.max_draft_len = std::min(draft.max_draft_len, plan.max_nodes);
      // The policy can only weigh further nodes that it may cut.
      if (draft.rate > 0.0 && parts_.options->tree.kind == TreeKind::kDynamic)
        plan.max_nodes = std::min(plan.max_nodes, draft.max_draft_len);
    }
    plan.max_draft_len = draft.max_draft_len;
    if (plan.max_draft_len == 0) plan.max_nodes = 0;
    if (step.is_predicted) plan.max_nodes = plan.max_draft_len;
    step.rate = draft.rate;
    step.row_ms = draft.row_ms;
    step.estimates = draft.estimates;
  }
}

// Trees with nodes drawn for the rejection rule stay whole: without a drawn node its siblings would
// count as chosen, which pass less often. Drafters that want choices learn from nodes that are never
// accepted.
bool ReserveStage::may_cut(const SequenceStep& step) const {
  const Sequence& sequence = *step.plan.sequence;
  const bool has_draws = compares_distributions(step.rule) && sequence.request().sampling.temperature > 0.0;
  const bool wants_choices = step.asks_drafter() && parts_.drafter->traits().wants_choices;
  return !has_draws && !wants_choices && parts_.policy->cuts(sequence.id(), step.is_predicted);
}

}  // namespace outrider
