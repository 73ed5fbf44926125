// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/step/draft_stage.h"
#include "engine/step/reserve_stage.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"

namespace outrider {

// Steps that follow one another on a device: it runs ahead, and this machine commits what has been chosen,
// one step after the other. Each of them is a step like all others, with the drafts that a step of this
// machine would have.
class DeviceStage {
 public:
  DeviceStage(const StepParts& parts, ReserveStage& reserve, DraftStage& draft);

  // Begins a run over the sequences of the step, whose drafts are planned. False: they need steps of this
  // machine.
  bool start(StepReport& report);
  // Waits for the next step of the run, of which it makes the trees and the verdicts. False: the run has
  // ended, or somebody interrupts.
  bool next(StepReport& report);
  // Commits the tokens of the step. The run ends where a sequence ends.
  void commit(StepReport& report);
  // Ends the run after an exception, without its entries.
  void abandon();

 private:
  bool takes(const StepReport& report) const;
  bool never_drafts(const SequenceStep& step, int sequences) const;
  bool drafts_there(const SequenceStep& step) const;
  void fix_sizes(std::span<SequenceStep> steps) const;
  int length_of_run(const StepReport& report) const;
  bool start_drafts(const StepReport& report);
  void start_loop(StepReport& report);
  void plan_next(StepReport& report);
  bool goes_on(const StepReport& report) const;
  // Ends the run, and keeps the entries of the steps that were committed.
  void finish(StepReport& report);
  void finish_drafts(bool keeps_entries);

  const StepParts& parts_;
  ReserveStage& reserve_;
  DraftStage& draft_;
  const DraftLimits most_;  // of the largest tree that the drafter may propose
  bool runs_ = false;
  int length_ = 0;  // steps of the run at most
  int done_ = 0;
  std::vector<const Sequence*> drafting_;    // sequences of a run with drafts
  std::vector<size_t> entries_;              // committed in the run, by sequence
  std::vector<std::vector<TokenId>> stops_;  // by sequence
};

}  // namespace outrider
