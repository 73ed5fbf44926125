// SPDX-License-Identifier: Apache-2.0
#include "engine/step/verify_stage.h"

#include <algorithm>

#include "sampling/logit_scan.h"
#include "speculation/acceptance/verifier.h"

namespace outrider {
namespace {

SamplingParams without_truncation(SamplingParams params) {
  if (params.temperature == 0.0) params.temperature = 1.0;
  params.drop_truncation();
  return params;
}

// Notes the target's likeliest token after every node, for drafters that also learn from rejected nodes.
void append_choices(SequenceStep& step, const LogitRows& logits) {
  for (int node = 0; node < step.tree.size(); ++node)
    step.verdict.choices.push_back(largest_logit(logits.row(node)).token);
}

// Choices change logits of unused tokens.
bool reads_raw_logits(const SequenceStep& step) {
  return step.prompt_logits > 0 || step.plan.sequence->request().logprobs >= 0;
}

}  // namespace

bool is_chosen_there(const SequenceStep& step) {
  const Sequence& sequence = *step.plan.sequence;
  const Request& request = sequence.request();
  return step.plan.decodes && step.rule == AcceptanceRule::kCoupled && !sequence.has_constraint() &&
         !request.logits_function && DeviceChooser::can_choose(request.sampling);
}

void VerifyStage::run(const LogitRows& logits, StepReport& report, StepTracer* tracer) {
  tracer_ = tracer;
  choose_on_device(report);
  for (index_ = 0; index_ < report.sequences.size(); ++index_) {
    SequenceStep& step = report.sequences[index_];
    if (!step.plan.decodes) continue;
    const LogitRows of_tree = logits.from(step.logits_row);
    verify_tree(step, of_tree);
    if (step.asks_drafter() && parts_.drafter->traits().wants_choices) append_choices(step, of_tree);
  }
}

void VerifyStage::choose_on_device(const StepReport& report) {
  chosen_ = {};
  if (parts_.pass_choices == nullptr || tracer_ != nullptr || parts_.drafter->traits().wants_choices) return;
  if (std::ranges::any_of(report.sequences, reads_raw_logits)) return;
  choice_rows_.clear();
  places_.clear();
  for (const SequenceStep& step : report.sequences) {
    if (!is_chosen_there(step)) continue;
    const Sequence& sequence = *step.plan.sequence;
    const auto end = static_cast<size_t>(step.logits_row + step.tree.size());
    if (choice_rows_.size() < end) choice_rows_.resize(end), places_.resize(end);
    for (int node = 0; node < step.tree.size(); ++node) {
      const auto row = static_cast<size_t>(step.logits_row + node);
      choice_rows_[row] = {&sequence.request().sampling, sequence.sample_key()};
      places_[row] = static_cast<int>(std::ssize(sequence.tokens()) + step.tree.depth(node));
    }
  }
  if (!choice_rows_.empty() && std::ssize(choice_rows_) <= parts_.pass_choices->max_rows())
    chosen_ = parts_.pass_choices->choose(choice_rows_, places_);
}

std::span<const TokenId> VerifyStage::tokens_there(const SequenceStep& step) const {
  if (chosen_.empty() || !is_chosen_there(step)) return {};
  const auto tokens =
      chosen_.subspan(static_cast<size_t>(step.logits_row), static_cast<size_t>(step.tree.size()));
  // A row without a number may have no token, and this machine says so.
  return std::ranges::all_of(tokens, [](TokenId token) { return token >= 0; }) ? tokens
                                                                               : std::span<const TokenId>();
}

void VerifyStage::verify_tree(SequenceStep& step, const LogitRows& logits) {
  Sequence& sequence = *step.plan.sequence;
  step_ = &step;
  own_tokens_ = tokens_there(step);
  empty_node_ = -1;
  if (step.rule == AcceptanceRule::kRelaxed) untruncated_ = without_truncation(sequence.request().sampling);
  walk_.start(sequence, step.tree, logits, parts_.unused_tokens);
  // A lambda that captures one pointer fits into a std::function without allocation.
  verify({.tree = &step.tree,
          .target_distribution = [this](int node) -> const Distribution& { return distribution_after(node); },
          .position = std::ssize(sequence.tokens()),
          .rule = step.rule,
          .randomness = &sequence.randomness,
          .target_token = [this](int node) { return token_after(node); },
          .options = parts_.options,
          .untruncated_distribution = [this](int node) -> const Distribution& {
            return untruncated_distribution_after(node);
          },
          .thinking = sequence.thinking()},
         step.verdict);
  walk_.finish();
  step.failed_depth = walk_.failed_depth();
  const bool may_allow_none = sequence.constraint() != nullptr || sequence.request().logits_function;
  step.is_dead_end = empty_node_ == step.verdict.path.back() && may_allow_none;
  if (!step.is_dead_end) return;
  step.verdict.tokens.pop_back();
  step.verdict.origins.pop_back();
}

std::span<const float> VerifyStage::logits_after(int node) {
  const bool is_new = node != walk_.node();
  const std::span<const float> logits = walk_.reach(node);
  if (is_new && tracer_ != nullptr) tracer_->reach(index_, step_->tree, node, logits);
  return logits;
}

int64_t VerifyStage::position_after(int node) const {
  return std::ssize(step_->plan.sequence->tokens()) + step_->tree.depth(node);
}

const Distribution& VerifyStage::distribution_after(int node) {
  Sequence& sequence = *step_->plan.sequence;
  const std::span<const float> logits = logits_after(node);
  const Distribution& distribution =
      processor_.build(logits, sequence.request().sampling, sequence.history,
                       sequence.randomness.exclusion_draw(position_after(node)));
  if (distribution.empty()) empty_node_ = node;
  return distribution;
}

const Distribution& VerifyStage::untruncated_distribution_after(int node) {
  const std::span<const float> logits = logits_after(node);
  return untruncated_processor_.build(logits, untruncated_, step_->plan.sequence->history);
}

TokenId VerifyStage::token_after(int node) {
  if (!own_tokens_.empty()) return own_tokens_[static_cast<size_t>(node)];
  Sequence& sequence = *step_->plan.sequence;
  const std::span<const float> logits = logits_after(node);
  const TokenId token = chooser_.choose(logits, sequence.request().sampling, sequence.history,
                                        {&sequence.randomness, position_after(node)});
  if (token < 0) empty_node_ = node;
  return token;
}

}  // namespace outrider
