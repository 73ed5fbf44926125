// SPDX-License-Identifier: Apache-2.0
#include "engine/step/device_stage.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "drafters/registry.h"
#include "engine/step/commit_stage.h"
#include "engine/step/verify_stage.h"
#include "models/backend/device/device_loop.h"
#include "speculation/acceptance/verifier.h"

namespace outrider {
namespace {

// Whether a step of the sequence is a pass after its pending token and choices that the device knows.
bool is_made_there(const SequenceStep& step) {
  const Sequence& sequence = *step.plan.sequence;
  const Request& request = sequence.request();
  const bool has_tree_elsewhere = step.is_offered || step.is_predicted || sequence.prediction() != nullptr;
  const bool has_readers =
      request.logprobs >= 0 || request.pooling != Pooling::kNone || sequence.wants_states();
  return is_chosen_there(step) && step.plan.prefill_tokens == 0 && !has_tree_elsewhere && !has_readers &&
         sequence.kv.adapters().empty();
}

// Tokens that the sequence may get in so many steps.
int tokens_of(const SequenceStep& step, int64_t steps) {
  return static_cast<int>(std::min(steps * (1 + step.plan.max_draft_len), step.plan.sequence->remaining()));
}

// Tokens that it may get before the last of these steps.
int tokens_before_last(const SequenceStep& step, int64_t steps) {
  return std::min(tokens_of(step, steps - 1), static_cast<int>(step.plan.sequence->remaining()) - 1);
}

// Entries that it may write: the tree of the last step follows all tokens before it.
int entries_of(const SequenceStep& step, int64_t steps) {
  return tokens_before_last(step, steps) + 1 + step.plan.max_nodes;
}

// The verdict of the tree that the device has drafted and walked through.
void verify_tree(SequenceStep& step, const DeviceLoop::Outcome& outcome) {
  Sequence& sequence = *step.plan.sequence;
  step.tree.reset(sequence.tokens().back());
  for (const DeviceLoop::Outcome::Node& node : outcome.nodes) step.tree.add(node.parent, node.token);
  step.failed_depth = -1;
  step.is_dead_end = false;
  verify({.tree = &step.tree,
          .target_distribution = {},
          .position = std::ssize(sequence.tokens()),
          .rule = step.rule,
          .randomness = &sequence.randomness,
          .target_token =
              [&](int node) {
                const auto depth = static_cast<size_t>(step.tree.depth(node));
                return depth < outcome.accepted.size() ? step.tree.token(outcome.accepted[depth])
                                                       : outcome.token;
              }},
         step.verdict);
}

}  // namespace

DeviceStage::DeviceStage(const StepParts& parts, ReserveStage& reserve, DraftStage& draft)
    : parts_(parts), reserve_(reserve), draft_(draft), most_(limits_of(*parts.options)) {}

// Whether no step of a run of so many sequences would draft for it.
bool DeviceStage::never_drafts(const SequenceStep& step, int sequences) const {
  return most_.max_draft_len == 0 || !step.plan.sequence->request().speculation.enabled ||
         parts_.speculation_limits->max_draft_len(sequences) == 0;
}

// Whether the device drafts what the drafter would draft here, in every step of a run, but for the size of
// trees that the policy decides (fix_sizes()).
bool DeviceStage::drafts_there(const SequenceStep& step) const {
  DeviceDraft* draft = parts_.device_loop->draft();
  if (draft == nullptr || !step.asks_drafter()) return false;
  DraftRequest request = draft_.request_of(step);
  request.estimates = nullptr;
  return draft->takes(request);
}

// Gives trees that the policy would end or cut as they grow a size for the run.
void DeviceStage::fix_sizes(std::span<SequenceStep> steps) const {
  for (SequenceStep& step : steps) {
    if (!step.asks_drafter() || step.rate == 0.0) continue;
    SequencePlan& plan = step.plan;
    if (parts_.options->tree.kind == TreeKind::kChain)
      plan.max_nodes = std::min(plan.max_nodes, plan.max_draft_len);
    const auto size = parts_.policy->size_until_next_plan(plan.sequence->id(),
                                                          {plan.max_draft_len, plan.max_nodes}, step.row_ms);
    plan.max_draft_len = size.levels;
    plan.max_nodes = size.nodes;
    step.may_cut = false;
    step.rate = step.row_ms = 0.0;
    step.estimates = nullptr;
  }
}

bool DeviceStage::takes(const StepReport& report) const {
  if (parts_.device_loop == nullptr) return false;
  const DrafterTraits& drafter = parts_.drafter->traits();
  const auto sequences = static_cast<int>(report.sequences.size());
  const bool drafts = report.drafting > 0;
  // Shares of the rows would change where a sequence drafts no more.
  if (drafts && parts_.scheduler->draft_rows() / sequences < most_.max_nodes) return false;
  const bool has_readers = drafter.features.count() > 0 || drafter.states.size > 0;
  return (drafts || !has_readers) && sequences <= parts_.device_loop->max_sequences(drafts) &&
         std::ranges::all_of(report.sequences, [&](const SequenceStep& step) {
           return is_made_there(step) &&
                  (never_drafts(step, sequences) || step.is_left_out || drafts_there(step));
         });
}

// No sequence ends by its length before the run does, and the entries fit into free pages. So would the trees
// that the scheduler plans for before requests narrow them: it drops the drafts of a step where they do not.
int DeviceStage::length_of_run(const StepReport& report) const {
  int64_t length = std::min(parts_.device_loop->shape().max_steps, parts_.scheduler->undisturbed_steps());
  for (const SequenceStep& step : report.sequences)
    length = std::min(length, step.plan.sequence->remaining());
  const auto pages_needed = [&] {
    int64_t pages = 0;
    for (const SequenceStep& step : report.sequences) {
      const KvSequence& kv = step.plan.sequence->kv;
      const int nodes = step.plan.sequence->request().speculation.enabled ? most_.max_nodes : 0;
      const int64_t entries = tokens_before_last(step, length) + 1 + std::max(nodes, step.plan.max_nodes);
      const int64_t all = parts_.cache->pages_for(kv.length() + entries);
      pages += std::max<int64_t>(0, all - std::ssize(kv.pages()));
    }
    return pages;
  };
  while (length > 1 && pages_needed() > parts_.cache->available_pages()) --length;
  return static_cast<int>(length);
}

bool DeviceStage::start(StepReport& report) {
  if (!takes(report)) return false;
  length_ = length_of_run(report);
  if (length_ < 2) return false;
  fix_sizes(report.sequences);
  for (const SequenceStep& step : report.sequences) draft_.begin(*step.plan.sequence);
  if (report.drafting > 0 && !start_drafts(report)) return false;
  start_loop(report);
  report.drafts_in_pass = report.drafting > 0;
  report.is_decoding &= !report.drafts_in_pass;  // times with drafts say nothing about the target's passes
  done_ = 0;
  runs_ = true;
  return true;
}

bool DeviceStage::start_drafts(const StepReport& report) {
  std::vector<DeviceDraft::Row> rows;
  drafting_.clear();
  for (const SequenceStep& step : report.sequences) {
    rows.push_back({.request = draft_.request_of(step),
                    .tokens = tokens_of(step, length_),
                    .before_last = tokens_before_last(step, length_)});
    drafting_.push_back(step.plan.sequence);
  }
  if (parts_.device_loop->draft()->start(rows)) return true;
  finish_drafts(/*keeps_entries=*/false);
  return false;
}

void DeviceStage::start_loop(StepReport& report) {
  stops_.clear();
  entries_.assign(report.sequences.size(), 0);
  for (SequenceStep& step : report.sequences) {
    const Sequence& sequence = *step.plan.sequence;
    stops_.emplace_back(sequence.stop_tokens().begin(), sequence.stop_tokens().end());
    const Status extended =
        step.transaction->extend(std::max(step.transaction->count(), entries_of(step, length_)));
    OUTRIDER_CHECK(extended.ok());
  }
  std::vector<DeviceLoop::Row> rows;
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    const SequenceStep& step = report.sequences[i];
    const Sequence& sequence = *step.plan.sequence;
    rows.push_back({.kv = &sequence.kv,
                    .token = sequence.tokens().back(),
                    .choice = {&sequence.request().sampling, sequence.sample_key()},
                    .stops = stops_[i],
                    .remaining = sequence.remaining(),
                    .max_draft_len = step.plan.max_draft_len,
                    .max_nodes = step.plan.max_nodes,
                    .max_children = sequence.request().speculation.max_children});
  }
  parts_.device_loop->start(rows, length_);
}

// The plan of a further step, as the stages before drafting would make it.
void DeviceStage::plan_next(StepReport& report) {
  report.drafting = 0;
  for (SequenceStep& step : report.sequences) {
    const auto most = static_cast<int>(step.plan.sequence->remaining() - 1);
    step.plan.max_draft_len = std::min(step.plan.max_draft_len, most);
    if (step.plan.max_draft_len == 0) step.plan.max_nodes = 0;
    report.drafting += step.drafts() ? 1 : 0;
  }
  reserve_.repeat_plan(report);
}

bool DeviceStage::next(StepReport& report) {
  if (!runs_) return false;
  // A sink may interrupt after the first step.
  const bool is_interrupted = done_ > 0 && *parts_.is_interrupted;
  const std::span<const DeviceLoop::Outcome> outcomes =
      is_interrupted ? std::span<const DeviceLoop::Outcome>() : parts_.device_loop->outcomes_of(done_);
  if (outcomes.empty()) {
    finish(report);
    return false;
  }
  if (done_++ > 0) plan_next(report);
  report.rows = 0;
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    verify_tree(report.sequences[i], outcomes[i]);
    report.rows += report.sequences[i].tree.size();
  }
  if (report.drafting > 0) draft_.prune(report.sequences);
  report.times = {};
  return true;
}

void DeviceStage::commit(StepReport& report) {
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    commit_tokens(report.sequences[i]);
    entries_[i] += report.sequences[i].verdict.path.size();
  }
  if (!goes_on(report)) finish(report);
}

bool DeviceStage::goes_on(const StepReport& report) const {
  return done_ < length_ && std::ranges::none_of(report.sequences, [](const SequenceStep& step) {
           return step.plan.sequence->finished() || step.plan.sequence->is_full();
         });
}

void DeviceStage::finish(StepReport& report) {
  runs_ = false;
  parts_.device_loop->stop();
  std::vector<int> path;
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    SequenceStep& step = report.sequences[i];
    const Sequence& sequence = *step.plan.sequence;
    const auto length = static_cast<size_t>(sequence.kv.length());
    path.resize(entries_[i]);
    std::iota(path.begin(), path.end(), 0);
    step.transaction->commit(path, sequence.tokens().subspan(length, path.size()));
    step.transaction.reset();
  }
  finish_drafts(/*keeps_entries=*/true);
  if (done_ > 1) parts_.scheduler->repeat_plan(done_ - 1);
}

void DeviceStage::finish_drafts(bool keeps_entries) {
  for (const Sequence* sequence : drafting_) {
    parts_.device_loop->draft()->finish(sequence->id(),
                                        keeps_entries ? sequence->tokens() : std::span<const TokenId>());
  }
  drafting_.clear();
}

void DeviceStage::abandon() {
  runs_ = false;
  if (parts_.device_loop != nullptr) parts_.device_loop->stop();
  finish_drafts(/*keeps_entries=*/false);
}

}  // namespace outrider
