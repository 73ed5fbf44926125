// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/step/logit_rows.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"
#include "models/forward_batch.h"

namespace outrider {

// Puts the trees and prompt chunks of all sequences into one batch of rows.
class FlattenStage {
 public:
  explicit FlattenStage(const StepParts& parts);

  // The batch lives until the next call.
  const ForwardBatch& run(StepReport& report);

 private:
  void append_tree_of(SequenceStep& step);
  void append_prompt_of(SequenceStep& step);
  void want_states_of(SequenceStep& step);
  void resume(const SequenceStep& step);

  ForwardBatch batch_;
  bool resumes_;  // rows that the drafter computed in part may enter after the first layers
};

// Runs the target over a batch.
class ForwardStage {
 public:
  explicit ForwardStage(const StepParts& parts) : parts_(parts) {}

  // The logits live until the next pass.
  LogitRows run(const ForwardBatch& batch);

 private:
  const StepParts& parts_;
};

}  // namespace outrider
