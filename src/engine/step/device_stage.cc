// SPDX-License-Identifier: Apache-2.0
#include "engine/step/device_stage.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engine/step/commit_stage.h"
#include "models/backend/device/device_loop.h"
#include "speculation/acceptance/verifier.h"

namespace outrider {
namespace {

// Whether a step of the sequence is a pass over its pending token and a choice that the device knows.
bool is_plain(const SequenceStep& step) {
  const Sequence& sequence = *step.plan.sequence;
  const Request& request = sequence.request();
  const bool is_one_row = step.plan.decodes && step.plan.prefill_tokens == 0 &&
                          step.plan.max_draft_len == 0 && !step.is_offered && !step.is_predicted;
  const bool is_chosen_there = step.rule == AcceptanceRule::kCoupled && !sequence.has_constraint() &&
                               !request.logits_function && DeviceChooser::can_choose(request.sampling);
  const bool has_readers =
      request.logprobs >= 0 || request.pooling != Pooling::kNone || sequence.wants_states();
  return is_one_row && is_chosen_there && !has_readers && sequence.kv.adapters().empty();
}

// The verdict of a tree that is only its root.
void verify_token(SequenceStep& step, TokenId token) {
  Sequence& sequence = *step.plan.sequence;
  step.tree.reset(sequence.tokens().back());
  step.failed_depth = -1;
  step.is_dead_end = false;
  verify({.tree = &step.tree,
          .target_distribution = {},
          .position = std::ssize(sequence.tokens()),
          .rule = step.rule,
          .randomness = &sequence.randomness,
          .target_token = [token](int) { return token; }},
         step.verdict);
}

}  // namespace

bool DeviceStage::takes(const StepReport& report) const {
  const DrafterTraits& drafter = parts_.drafter->traits();
  return parts_.device_loop != nullptr && drafter.features.count() == 0 && drafter.states.size == 0 &&
         std::ssize(report.sequences) <= parts_.device_loop->shape().max_rows &&
         std::ranges::all_of(report.sequences, is_plain);
}

// No sequence ends by its length before the run does, and the entries fit into free pages.
int DeviceStage::length_of_run(const StepReport& report) const {
  int64_t length = std::min(parts_.device_loop->shape().max_steps, parts_.scheduler->undisturbed_steps());
  for (const SequenceStep& step : report.sequences)
    length = std::min(length, step.plan.sequence->remaining());
  const auto pages_needed = [&] {
    int64_t pages = 0;
    for (const SequenceStep& step : report.sequences)
      pages += parts_.cache->pages_needed(step.plan.sequence->kv, static_cast<int>(length));
    return pages;
  };
  while (length > 1 && pages_needed() > parts_.cache->available_pages()) --length;
  return static_cast<int>(length);
}

bool DeviceStage::start(StepReport& report) {
  if (!takes(report)) return false;
  length_ = length_of_run(report);
  if (length_ < 2) return false;
  done_ = 0;
  parts_.policy->plan(report.shape, {}, parts_.scheduler->draft_rows());  // costs are learned for this shape
  stops_.clear();
  for (SequenceStep& step : report.sequences) {
    Sequence& sequence = *step.plan.sequence;
    stops_.emplace_back(sequence.stop_tokens().begin(), sequence.stop_tokens().end());
    auto transaction = parts_.cache->stage(sequence.kv, length_);
    OUTRIDER_CHECK(transaction.ok());
    step.transaction = std::move(*transaction);
  }
  std::vector<DeviceLoop::Row> rows;
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    const Sequence& sequence = *report.sequences[i].plan.sequence;
    rows.push_back({.kv = &sequence.kv,
                    .token = sequence.tokens().back(),
                    .choice = {&sequence.request().sampling, sequence.sample_key()},
                    .stops = stops_[i]});
  }
  parts_.device_loop->start(rows, length_);
  runs_ = true;
  return true;
}

bool DeviceStage::next(StepReport& report) {
  if (!runs_) return false;
  // A sink may interrupt after the first step.
  const bool is_interrupted = done_ > 0 && *parts_.is_interrupted;
  const std::span<const TokenId> tokens =
      is_interrupted ? std::span<const TokenId>() : parts_.device_loop->tokens_of(done_);
  if (tokens.empty()) {
    finish(report);
    return false;
  }
  ++done_;
  for (size_t i = 0; i < report.sequences.size(); ++i) verify_token(report.sequences[i], tokens[i]);
  report.rows = static_cast<int>(report.sequences.size());
  report.times = {};
  return true;
}

void DeviceStage::commit(StepReport& report) {
  for (SequenceStep& step : report.sequences) commit_tokens(step);
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
  std::vector<int> entries(static_cast<size_t>(done_));
  std::iota(entries.begin(), entries.end(), 0);
  for (SequenceStep& step : report.sequences) {
    const Sequence& sequence = *step.plan.sequence;
    const auto length = static_cast<size_t>(sequence.kv.length());
    step.transaction->commit(entries, sequence.tokens().subspan(length, entries.size()));
    step.transaction.reset();
  }
  if (done_ > 1) parts_.scheduler->repeat_plan(done_ - 1);
}

void DeviceStage::abandon() {
  runs_ = false;
  if (parts_.device_loop != nullptr) parts_.device_loop->stop();
}

}  // namespace outrider
