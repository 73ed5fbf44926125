// SPDX-License-Identifier: Apache-2.0
// The part of a step before the target's pass: who drafts, how much, and what is left of the trees.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/draft_checks.h"
#include "engine/guarded_call.h"
#include "engine/step.h"
#include "engine/step_figures.h"
#include "engine/step_tracer.h"

namespace outrider {
namespace {

// Outside of thinking the relaxed rule is the coupled one.
AcceptanceRule drafted_for(AcceptanceRule rule) {
  return rule == AcceptanceRule::kRelaxed ? AcceptanceRule::kCoupled : rule;
}

}  // namespace

// Lets the policy say how much is drafted, within the limits of each sequence's plan.
void Step::plan_drafts() {
  drafts_.clear();
  for (Work& work : work()) {
    if (work.plan.draft_depth > 0)
      drafts_.push_back({.sequence = work.plan.sequence->id(),
                         .tokens = std::ssize(work.plan.sequence->tokens()),
                         .depth = work.plan.draft_depth,
                         .is_auto = work.plan.sequence->request().speculation.is_auto});
  }
  parts_.policy->plan(load_, drafts_);
  share_rows();
  std::erase_if(drafts_, [](const SpeculationPolicy::Draft& draft) { return draft.depth == 0; });
}

// Trees that cannot be cut when all are grown get equal parts of the rows that drafts may take.
void Step::share_rows() {
  const auto drafting = std::ranges::count_if(drafts_, [](const auto& draft) { return draft.depth > 0; });
  auto draft = drafts_.begin();
  for (Work& work : work()) {
    if (work.plan.draft_depth == 0) continue;
    SequencePlan& plan = work.plan;
    if (draft->depth > 0 && !may_cut(*plan.sequence)) {
      plan.draft_nodes = std::min(plan.draft_nodes, draft_rows_ / static_cast<int>(drafting));
      draft->depth = std::min(draft->depth, plan.draft_nodes);
    }
    plan.draft_depth = (draft++)->depth;
    if (plan.draft_depth == 0) plan.draft_nodes = 0;
  }
}

// Whether the policy does, and may: dropping a drawn node would turn its siblings into chosen ones, which
// pass less often; and some drafters learn from nodes that are never accepted.
bool Step::may_cut(const Sequence& sequence) {
  const bool has_draws =
      rule_of(sequence) == AcceptanceRule::kRejection && sequence.request().sampling.temperature > 0.0;
  return !has_draws && !parts_.drafter->traits().wants_choices && parts_.policy->cuts(sequence.id());
}

void Step::draft() {
  requests_.clear();
  drafting_.clear();
  draft_failed_ = false;
  for (size_t i = 0; i < work_count_; ++i) {
    const SequencePlan& plan = work_[i].plan;
    Sequence& sequence = *plan.sequence;
    if (!sequence.started) {
      sequence.started = true;
      reserve_figures(sequence.completion().speculation, parts_.limits.max_depth);
      (void)guarded([&] {
        return parts_.drafter->begin(sequence.id(), sequence.tokens(), sequence.request().cache_scope),
               Status();
      });
    }
    if (plan.draft_depth > 0) ask(i);
  }
  if (requests_.empty()) return;
  const auto trees = std::span(trees_).first(drafting_.size());
  const Status status = guarded([&] { return parts_.drafter->draft(requests_, trees); });
  draft_failed_ = !status.ok();
  if (!draft_failed_) return take_trees(trees);
  if (!std::exchange(draft_failure_logged_, true)) {
    log_warning("drafter " + parts_.drafter->traits().name +
                " failed, going on without it: " + status.error().message);
  }
}

// Adds what sequence number `index` asks of the drafter.
void Step::ask(size_t index) {
  Work& work = work_[index];
  Sequence& sequence = *work.plan.sequence;
  const SpeculationPolicy::Draft& draft = drafts_[requests_.size()];
  drafting_.push_back(index);
  if (trees_.size() < drafting_.size()) trees_.emplace_back();
  trees_[drafting_.size() - 1].reset(work.tree.token(0));
  requests_.push_back({.sequence = sequence.id(),
                       .scope = sequence.request().cache_scope,
                       .tokens = sequence.tokens(),
                       .prompt_length = static_cast<int>(sequence.prompt_length()),
                       .max_depth = work.plan.draft_depth,
                       .max_nodes = work.plan.draft_nodes,
                       .sampling = &sequence.request().sampling,
                       .sample_index = sequence.request().sample_index,
                       .acceptance = drafted_for(rule_of(sequence)),
                       .constraint = sequence.constraint(),
                       .constraint_state = sequence.constraint_state(),
                       .wants_probabilities = draft.estimates != nullptr || tracer_ != nullptr,
                       .rate = draft.rate,
                       .estimates = draft.estimates,
                       .target = parts_.drafter->traits().uses_target ? give_access(work) : nullptr});
}

void Step::take_trees(std::span<TokenTree> trees) {
  for (size_t j = 0; j < drafting_.size(); ++j) {
    if (tracer_ != nullptr) tracer_->list_nodes(drafting_[j], trees[j]);
    TokenTree& tree = work_[drafting_[j]].tree;
    if (is_within_limits(trees[j], requests_[j], parts_.vocab_size)) {
      std::swap(tree, trees[j]);
    } else {
      tree = within_limits(trees[j], requests_[j], parts_.vocab_size);
    }
    // Some drafters learn from nodes that are never accepted.
    if (!parts_.drafter->traits().wants_choices) cut_forbidden(tree, requests_[j]);
  }
}

const TargetAccess* Step::give_access(Work& work) {
  work.access = {.model = parts_.target,
                 .cache = parts_.cache,
                 .sequence = &work.plan.sequence->kv,
                 .staged = &*work.transaction,
                 .exits = &work.exits};
  return &work.access;
}

void Step::prune() {
  if (drafting_.empty() || draft_failed_) return;
  grown_.clear();
  for (const size_t i : drafting_) {
    Work& work = work_[i];
    const Sequence& sequence = *work.plan.sequence;
    grown_.push_back({sequence.id(), &work.tree, may_cut(sequence)});
  }
  parts_.policy->prune(grown_, draft_rows_);
}

}  // namespace outrider
