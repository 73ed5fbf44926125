// SPDX-License-Identifier: Apache-2.0
#include "engine/step/draft_stage.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/guarded_call.h"
#include "engine/request_checks.h"
#include "engine/step/draft_checks.h"
#include "engine/step/statistics.h"

namespace outrider {
namespace {

// The rule that the drafter draws for: outside of thinking the relaxed rule is the coupled one.
AcceptanceRule drafted_for(AcceptanceRule rule) {
  return rule == AcceptanceRule::kRelaxed ? AcceptanceRule::kCoupled : rule;
}

}  // namespace

DraftStage::DraftStage(const StepParts& parts)
    : parts_(parts),
      together_(parts.draft_ahead, /*has_turns=*/true),
      apart_(parts.draft_ahead, /*has_turns=*/false) {
  const auto sequences = static_cast<size_t>(parts.limits.max_sequences);
  requests_.reserve(sequences);
  access_.resize(sequences);
  grown_.reserve(sequences);
  trees_.resize(sequences);
  for (TokenTree& tree : trees_) tree.reserve(1 + parts.max_nodes);
  predicted_.reserve(1 + parts.max_nodes);
}

void DraftStage::run(StepReport& report, StepTracer* tracer) {
  requests_.clear();
  for (const SequenceStep& step : report.sequences) begin(*step.plan.sequence);
  ways_ = ways_of(report, tracer);
  if (ways_ != nullptr && ways_->way().takes_turns) hold(report);
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    SequenceStep& step = report.sequences[i];
    if (step.is_offered) take_offered(step, i, tracer);
    if (step.drafts() && step.is_predicted) take_predicted(step, i, tracer);
    if (step.asks_drafter()) ask(step, tracer != nullptr);
  }
  if (report.drafting == 0) return;
  if (!requests_.empty()) draft(report, tracer);
  if (!report.draft_failed) prune(report.sequences);
}

// Whether the draft of the sequence can be made while the target verifies others. A constraint can only be
// asked while nothing else runs here, and costs learn nothing from times that overlap.
bool DraftStage::may_wait(const SequenceStep& step) const {
  return step.asks_drafter() && step.rate == 0.0 && step.plan.sequence->constraint() == nullptr;
}

DraftWays* DraftStage::ways_of(const StepReport& report, const StepTracer* tracer) {
  if (!parts_.drafter->traits().takes_orders || tracer != nullptr) return nullptr;
  const auto waiting =
      std::ranges::count_if(report.sequences, [&](const auto& step) { return may_wait(step); });
  if (waiting > 1) return &together_;
  return std::ranges::any_of(report.sequences, &SequenceStep::asks_drafter) ? &apart_ : nullptr;
}

// Where sequences take turns, the drafts that were ordered in an earlier step are verified in this one, and
// the drafts of the other sequences are ordered. In the beginning every second one goes first.
void DraftStage::hold(StepReport& report) {
  const auto is_ordered = [](const SequenceStep& step) {
    return step.plan.sequence->ordered_length == std::ssize(step.plan.sequence->tokens());
  };
  const bool has_ordered = std::ranges::any_of(
      report.sequences, [&](const auto& step) { return may_wait(step) && is_ordered(step); });
  size_t kept = 0;
  bool is_second = false;
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    SequenceStep& step = report.sequences[i];
    bool is_held = may_wait(step);
    if (is_held) is_held = has_ordered ? !is_ordered(step) : std::exchange(is_second, !is_second);
    if (is_held) continue;
    if (kept != i) std::swap(report.sequences[kept], step);
    ++kept;
  }
  order(report, kept);
}

// Orders the drafts of the sequences from number `kept` on, which leave the step.
void DraftStage::order(StepReport& report, size_t kept) {
  for (SequenceStep& step : report.sequences.subspan(kept)) {
    requests_.push_back(request_of(step));
    step.plan.sequence->ordered_length = std::ssize(step.plan.sequence->tokens());
    step.transaction.reset();
    --report.drafting;
  }
  if (!requests_.empty()) (void)guarded([&] { return parts_.drafter->order(requests_), Status(); });
  requests_.clear();
  report.sequences = report.sequences.first(kept);
}

void DraftStage::observe(const StepReport& report) {
  if (ways_ == nullptr) return;
  double tokens = 0;
  for (const SequenceStep& step : report.sequences) tokens += static_cast<double>(step.verdict.tokens.size());
  ways_->learn(tokens, report.times.drafting() + report.times.verifying() + report.times.observe);
}

void DraftStage::begin(Sequence& sequence) {
  if (std::exchange(sequence.started, true)) return;
  reserve_statistics(sequence.completion().speculation, parts_.limits.max_draft_len);
  if (sequence.is_offered()) return;
  (void)guarded([&] {
    parts_.drafter->begin(sequence.id(), sequence.tokens(), sequence.scope());
    return Status();
  });
}

// The drafters of these names, by bit.
uint32_t DraftStage::members_of(std::span<const std::string> methods) const {
  if (methods.empty()) return ~uint32_t{0};
  const std::vector<std::string>& sources = parts_.drafter->traits().sources;
  uint32_t members = 0;
  for (size_t i = 0; i < sources.size(); ++i)
    if (names_method(methods, sources[i])) members |= uint32_t{1} << i;
  return members;
}

DraftRequest DraftStage::request_of(const SequenceStep& step) const {
  Sequence& sequence = *step.plan.sequence;
  return {.sequence = sequence.id(),
          .scope = sequence.scope(),
          .tokens = sequence.tokens(),
          .prompt_length = static_cast<int>(sequence.prompt_part()),
          .max_draft_len = step.plan.max_draft_len,
          .max_nodes = step.plan.max_nodes,
          .max_children = sequence.request().speculation.max_children,
          .members = members_of(sequence.request().speculation.methods),
          .sampling = &sequence.request().sampling,
          .sample_index = sequence.sample_key(),
          .acceptance = drafted_for(step.rule),
          .constraint = sequence.constraint(),
          .constraint_state = sequence.constraint_state(),
          .may_guess = ways_ != nullptr && ways_->way().guesses,
          .rate = step.rate,
          .row_ms = step.row_ms,
          .estimates = step.estimates};
}

void DraftStage::take_offered(SequenceStep& step, size_t index, StepTracer* tracer) const {
  std::optional<TokenTree>& offered = step.plan.sequence->offered;
  if (tracer != nullptr) tracer->add_nodes(index, *offered);
  take(step, request_of(step), *offered);
  offered.reset();
}

void DraftStage::take_predicted(SequenceStep& step, size_t index, StepTracer* tracer) {
  predicted_.reset(step.tree.token(0));
  step.plan.sequence->prediction()->grow(step.plan.max_nodes, predicted_);
  if (tracer != nullptr) tracer->add_nodes(index, predicted_);
  take(step, request_of(step), predicted_);
}

void DraftStage::ask(SequenceStep& step, bool is_traced) {
  const size_t index = requests_.size();
  trees_[index].reset(step.tree.token(0));
  access_[index] = {.model = parts_.target,
                    .cache = parts_.cache,
                    .sequence = &step.plan.sequence->kv,
                    .staged = &*step.transaction,
                    .exits = &step.exits};
  DraftRequest request = request_of(step);
  request.wants_probabilities = step.estimates != nullptr || is_traced;
  request.target = parts_.drafter->traits().uses_target ? &access_[index] : nullptr;
  requests_.push_back(request);
}

void DraftStage::draft(StepReport& report, StepTracer* tracer) {
  const auto trees = std::span(trees_).first(requests_.size());
  const Status status = guarded([&] { return parts_.drafter->draft(requests_, trees); });
  report.draft_failed = !status.ok();
  if (report.draft_failed) {
    if (!std::exchange(is_failure_logged_, true)) {
      log_warning("drafter " + parts_.drafter->traits().name +
                  " failed, going on without it: " + status.error().message);
    }
    return;
  }
  size_t next = 0;  // request
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    SequenceStep& step = report.sequences[i];
    if (!step.asks_drafter()) continue;
    if (tracer != nullptr) tracer->add_nodes(i, trees[next]);
    take(step, requests_[next], trees[next]);
    ++next;
  }
}

// Makes what is valid of `drafted` the tree of the step.
void DraftStage::take(SequenceStep& step, const DraftRequest& request, TokenTree& drafted) const {
  if (is_within_limits(drafted, request, parts_.vocab_size)) {
    std::swap(step.tree, drafted);
  } else {
    step.tree = within_limits(drafted, request, parts_.vocab_size);
  }
  // Drafters that want choices learn from nodes that are never accepted.
  if (step.is_predicted || !parts_.drafter->traits().wants_choices) cut_forbidden(step.tree, request);
}

void DraftStage::prune(std::span<SequenceStep> steps) {
  grown_.clear();
  int rows = parts_.scheduler->draft_rows();
  for (SequenceStep& step : steps) {
    if (step.is_offered) rows -= step.tree.drafted();
    if (!step.drafts()) continue;
    grown_.push_back({.sequence = step.plan.sequence->id(),
                      .is_predicted = step.is_predicted,
                      .tree = &step.tree,
                      .may_drop = step.may_cut});
  }
  parts_.policy->prune(grown_, rows);
}

}  // namespace outrider
