// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"

namespace outrider {

// Steps that follow one another on a device: it runs ahead, and this machine commits what has been chosen,
// one step after the other. Each of them is a step like all others, in which every sequence gains a token.
class DeviceStage {
 public:
  explicit DeviceStage(const StepParts& parts) : parts_(parts) {}

  // Begins a run over the sequences of the step, for which it stages entries. False: they need steps of this
  // machine.
  bool start(StepReport& report);
  // Waits for the next step of the run, of which it makes the verdicts. False: the run has ended, or somebody
  // interrupts.
  bool next(StepReport& report);
  // Commits the tokens of the step. The run ends where a sequence ends.
  void commit(StepReport& report);
  // Ends the run after an exception, without its entries.
  void abandon();

 private:
  bool takes(const StepReport& report) const;
  int length_of_run(const StepReport& report) const;
  bool goes_on(const StepReport& report) const;
  // Ends the run, and keeps the entries of the steps that were committed.
  void finish(StepReport& report);

  const StepParts& parts_;
  bool runs_ = false;
  int length_ = 0;  // steps of the run at most
  int done_ = 0;
  std::vector<std::vector<TokenId>> stops_;  // by sequence
};

}  // namespace outrider
