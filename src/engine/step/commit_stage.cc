// SPDX-License-Identifier: Apache-2.0
#include "engine/step/commit_stage.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "drafters/target_access.h"
#include "engine/guarded_call.h"
#include "sampling/log_probability.h"

namespace outrider {
namespace {

// Adds the log-probabilities of the prompt's tokens that follow the computed prompt rows.
void append_prompt_logprobs(const LogitRows& logits, const SequenceStep& step) {
  Sequence& sequence = *step.plan.sequence;
  const int count = step.prompt_logits;
  const auto next = static_cast<size_t>(sequence.kv.length() + step.plan.prefill_tokens - count + 1);
  for (int i = 0; i < count; ++i) {
    const LogSoftmax distribution(logits.whole_row(step.prompt_logits_row + i), logits.vocab_size);
    const TokenId token = sequence.tokens()[next + static_cast<size_t>(i)];
    TokenLogprobs logprobs = distribution.list(token, sequence.request().prompt_logprobs);
    logprobs.rank = distribution.rank(token);
    sequence.add_prompt_logprobs(std::move(logprobs));
  }
}

// Adds the log-probabilities of the tokens just committed.
void append_logprobs(const LogitRows& logits, const SequenceStep& step) {
  Sequence& sequence = *step.plan.sequence;
  for (size_t i = 0; i < step.verdict.tokens.size(); ++i) {
    const LogSoftmax distribution(logits.whole_row(step.logits_row + step.verdict.path[i]),
                                  logits.vocab_size);
    sequence.completion().logprobs.push_back(
        distribution.list(step.verdict.tokens[i], sequence.request().logprobs));
  }
}

// Adds the states of this step to the states that the sequence pools.
void pool_states(Model& target, const SequenceStep& step) {
  const auto size = static_cast<size_t>(target.config().hidden_size);
  for (int i = 0; i < step.states; ++i)
    step.plan.sequence->pool(
        target.hidden_states().subspan(static_cast<size_t>(step.states_row + i) * size, size));
}

}  // namespace

void commit_tokens(SequenceStep& step) {
  Sequence& sequence = *step.plan.sequence;
  Verdict& verdict = step.verdict;
  // Tokens before a failure are the tokens of plain decoding.
  if (step.failed_depth >= 0) verdict.tokens.resize(static_cast<size_t>(step.failed_depth));
  const auto committed = static_cast<size_t>(sequence.commit(verdict.tokens, verdict.origins));
  // After a slide the target may see a way on.
  if (step.failed_depth >= 0 && !sequence.is_full()) sequence.finish(FinishReason::kError);
  if (step.is_dead_end && !sequence.is_full()) sequence.finish(FinishReason::kStop);
  // path[committed] holds the last committed token if that was drafted; later nodes are past the end.
  for (size_t i = committed + 1; i < verdict.path.size(); ++i)
    verdict.fates[static_cast<size_t>(verdict.path[i])] = NodeFate::kPastStop;
  verdict.path.resize(committed);
  verdict.tokens.resize(committed);
  verdict.origins.resize(committed);
}

CommitStage::CommitStage(const StepParts& parts)
    : parts_(parts), wants_features_(parts.drafter->traits().features.count() > 0) {
  const auto rows = static_cast<size_t>(parts.limits.rows);
  const auto sequences = static_cast<size_t>(parts.limits.max_sequences);
  entries_.reserve(rows);
  features_.reserve(sequences);
  feature_rows_.resize(sequences);
  const bool has_readers = wants_features_ || parts.drafter->traits().states.size > 0;
  for (std::vector<int>& list : feature_rows_) {
    if (has_readers) list.reserve(rows);
  }
}

void CommitStage::run(const LogitRows& logits, StepReport& report) {
  for (size_t i = 0; i < report.sequences.size(); ++i) {
    SequenceStep& step = report.sequences[i];
    commit(logits, step);
    if (!is_read(*step.plan.sequence)) continue;
    feature_rows_[i].clear();
    for (const int entry : entries_) feature_rows_[i].push_back(step.first_row + entry);
    if (step.plan.sequence->wants_states()) collect_states(*step.plan.sequence, feature_rows_[i]);
  }
  if (wants_features_) hand_over_features(report.sequences);
}

// Whether a drafter, here or elsewhere, reads what the pass has computed for the sequence.
bool CommitStage::is_read(const Sequence& sequence) const {
  return sequence.is_offered() ? sequence.wants_states() : wants_features_;
}

// Leaves the committed entries in entries_.
void CommitStage::commit(const LogitRows& logits, SequenceStep& step) {
  Sequence& sequence = *step.plan.sequence;
  const int prefill_tokens = step.plan.prefill_tokens;
  const auto length = static_cast<size_t>(sequence.kv.length());
  entries_.resize(static_cast<size_t>(prefill_tokens));
  std::iota(entries_.begin(), entries_.end(), 0);
  append_prompt_logprobs(logits, step);
  pool_states(*parts_.target, step);
  if (step.plan.decodes) {
    commit_tokens(step);
    for (const int node : step.verdict.path) entries_.push_back(prefill_tokens + node);
    if (sequence.request().logprobs >= 0) append_logprobs(logits, step);
  }
  step.transaction->commit(entries_, sequence.tokens().subspan(length, entries_.size()));
  step.transaction.reset();
}

CommittedFeatures CommitStage::features_of(const Sequence& sequence, std::span<const int> rows) const {
  return {.sequence = sequence.id(),
          .tokens = sequence.tokens(),
          .first = sequence.kv.length() - static_cast<int>(rows.size()),
          .rows = rows,
          .features = parts_.target->features().data(),
          .size = parts_.target->feature_size()};
}

void CommitStage::hand_over_features(std::span<const SequenceStep> steps) {
  features_.clear();
  for (size_t i = 0; i < steps.size(); ++i) {
    const Sequence& sequence = *steps[i].plan.sequence;
    if (!sequence.is_offered()) features_.push_back(features_of(sequence, feature_rows_[i]));
  }
  (void)guarded([&] { return parts_.drafter->absorb(features_), Status(); });
}

// Keeps the states that the request does not have yet. Where that fails there are none from then on, until
// the sequence is computed again: its drafter proposes nothing without them.
void CommitStage::collect_states(Sequence& sequence, std::span<const int> rows) const {
  const int64_t first = sequence.kv.length() - std::ssize(rows);
  rows = rows.subspan(
      static_cast<size_t>(std::clamp<int64_t>(sequence.states_end - first, 0, std::ssize(rows))));
  if (rows.empty() || first > sequence.states_end) return;
  const size_t before = sequence.states.size();
  const TargetAccess target{.model = parts_.target, .cache = parts_.cache, .sequence = &sequence.kv};
  const Status status = guarded([&] {
    const auto size = static_cast<size_t>(parts_.drafter->traits().states.size);
    sequence.states.resize(before + rows.size() * size);
    parts_.drafter->collect_states(features_of(sequence, rows), target, sequence.states.data() + before);
    return Status();
  });
  if (!status.ok()) return sequence.states.resize(before);
  sequence.states_end += std::ssize(rows);
}

}  // namespace outrider
