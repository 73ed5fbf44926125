// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "open/files.h"
#include "open/parts.h"
#include "outrider/result.h"

namespace outrider {

// The behaviour to expect of a model under a limit of memory (--memory).
struct MemoryForecast {
  PlannedMemory memory = {};  // needs more than the limit: the model does not run under it
  double read_rate = 0;       // bytes per second at which its file can be read; 0: no pass reads any

  // The time to read the weights of a pass over one token.
  double pass_seconds() const {
    return read_rate == 0 ? 0 : static_cast<double>(memory.layers.bytes) / read_rate;
  }
};

// The options of the files must have a limit. Errors: see plan_parts(); the file cannot be read.
Result<MemoryForecast> forecast_memory(const OpenedFiles& files);

}  // namespace outrider
