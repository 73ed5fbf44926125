// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"

namespace outrider {

// Sends what is new to the sinks of the requests. Finished sequences are gone afterwards.
class StreamStage {
 public:
  explicit StreamStage(const StepParts& parts) : parts_(parts) {}

  void run(const StepReport& report);

 private:
  const StepParts& parts_;
};

}  // namespace outrider
