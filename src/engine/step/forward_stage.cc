// SPDX-License-Identifier: Apache-2.0
#include "engine/step/forward_stage.h"

#include <algorithm>

namespace outrider {
namespace {

// How many of the last prompt rows of this step need logits: rows before tokens with log-probabilities that
// are wanted and not yet known.
int prompt_logits_of(const SequenceStep& step) {
  const Sequence& sequence = *step.plan.sequence;
  if (sequence.pending_logprobs() == 0) return 0;
  const int64_t first = sequence.prompt_length() - 1 - sequence.pending_logprobs();
  const int64_t length = sequence.kv.length();
  return static_cast<int>(std::max<int64_t>(0, length + step.plan.prefill_tokens - std::max(first, length)));
}

}  // namespace

// Features come only from whole passes, so a drafter that reads them gets no resumed rows.
FlattenStage::FlattenStage(const StepParts& parts) : resumes_(parts.drafter->traits().features.count() == 0) {
  batch_.reserve(parts.limits);
  if (parts.drafter->traits().uses_target) {
    const int64_t hidden_size = parts.target->config().hidden_size;
    batch_.resumed_states.reserve(static_cast<size_t>(parts.limits.rows * hidden_size));
  }
}

const ForwardBatch& FlattenStage::run(StepReport& report) {
  batch_.clear();
  for (SequenceStep& step : report.sequences) {
    step.first_row = batch_.rows();
    step.prompt_logits = 0;
    if (step.plan.prefill_tokens == 0) {
      append_tree_of(step);
    } else {
      append_prompt_of(step);
    }
    want_states_of(step);
  }
  report.rows = batch_.rows();
  return batch_;
}

void FlattenStage::append_tree_of(SequenceStep& step) {
  if (resumes_) resume(step);
  step.logits_row = append_tree(batch_, step.plan.sequence->kv, *step.transaction,
                                {step.tree.tokens(), step.tree.parents()}, LogitsWanted::kAll);
}

void FlattenStage::append_prompt_of(SequenceStep& step) {
  const Sequence& sequence = *step.plan.sequence;
  const auto chunk = sequence.tokens().subspan(static_cast<size_t>(sequence.kv.length()),
                                               static_cast<size_t>(step.plan.entries()));
  step.prompt_logits = prompt_logits_of(step);
  const int first_wanted = step.plan.prefill_tokens - step.prompt_logits;
  step.prompt_logits_row = append_chain(batch_, sequence.kv, *step.transaction, chunk, first_wanted);
  step.logits_row = step.prompt_logits_row + step.prompt_logits;
}

// A pooled request drafts nothing, so its last row is the pending token's.
void FlattenStage::want_states_of(SequenceStep& step) {
  const Pooling pooling = step.plan.sequence->request().pooling;
  step.states = pooling == Pooling::kMean                        ? step.plan.rows()
                : pooling == Pooling::kLast && step.plan.decodes ? 1
                                                                 : 0;
  step.states_row = static_cast<int>(batch_.hidden_state_rows.size());
  for (int row = batch_.rows() - step.states; row < batch_.rows(); ++row)
    batch_.hidden_state_rows.push_back(row);
}

// Lets the rows that the drafter took through the first layers enter the pass after these layers. They end at
// the first row that is no longer the same in the tree, because later rows may descend from it.
void FlattenStage::resume(const SequenceStep& step) {
  const ExitStates& exits = step.exits;
  const auto changed = std::ranges::find_if_not(exits.rows, [&](const ExitStates::Row& row) {
    return row.node < step.tree.size() && step.tree.token(row.node) == row.token &&
           step.tree.parent(row.node) == row.parent;
  });
  if (changed == exits.rows.begin()) return;
  batch_.resume_layer = exits.layers;
  for (auto row = exits.rows.begin(); row != changed; ++row)
    batch_.resumed_rows.push_back(step.first_row + row->node);
  const auto hidden = static_cast<std::ptrdiff_t>(exits.states.size() / exits.rows.size());
  batch_.resumed_states.insert(batch_.resumed_states.end(), exits.states.begin(),
                               exits.states.begin() + (changed - exits.rows.begin()) * hidden);
}

LogitRows ForwardStage::run(const ForwardBatch& batch) {
  parts_.target->run_pass(batch, *parts_.cache);
  return {.model = parts_.target, .vocab_size = static_cast<size_t>(parts_.vocab_size)};
}

}  // namespace outrider
