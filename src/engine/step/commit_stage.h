// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/step/logit_rows.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"

namespace outrider {

// Commits the verdict's tokens until one of them ends the sequence, and drops the others from the verdict.
void commit_tokens(SequenceStep& step);

// Makes what was verified part of the sequences: tokens, log-probabilities and KV entries. Drafters that
// learn from the target's inner state get the features of the committed entries, and requests that are
// drafted on another machine their states.
class CommitStage {
 public:
  explicit CommitStage(const StepParts& parts);

  // logits: of the step's pass.
  void run(const LogitRows& logits, StepReport& report);

 private:
  void commit(const LogitRows& logits, SequenceStep& step);
  bool is_read(const Sequence& sequence) const;
  CommittedFeatures features_of(const Sequence& sequence, std::span<const int> rows) const;
  void hand_over_features(std::span<const SequenceStep> steps);
  void collect_states(Sequence& sequence, std::span<const int> rows) const;

  const StepParts& parts_;
  const bool wants_features_;                   // the drafter calls for them
  std::vector<int> entries_;                    // staged entries of one sequence to commit
  std::vector<std::vector<int>> feature_rows_;  // by sequence, then by committed entry: its row of the pass
  std::vector<CommittedFeatures> features_;
};

}  // namespace outrider
