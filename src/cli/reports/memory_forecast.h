// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/model_file.h"
#include "outrider/result.h"

namespace outrider {

// The behaviour to expect of a model under a limit of memory (--memory), told from the sizes of its tensors
// and from the rate at which its file can be read.
struct MemoryForecast {
  int64_t layers = 0;
  int64_t streamed_layers = 0;
  int64_t experts = 0;         // in all layers
  int64_t kept_experts = 0;    // that there is memory for
  int64_t streamed_bytes = 0;  // that a pass over one token reads
  double read_rate = 0;        // bytes per second
  int64_t needed = 0;          // bytes; more than the limit: the model does not run under it

  // The time to read them.
  double pass_seconds() const {
    return streamed_bytes == 0 ? 0 : static_cast<double>(streamed_bytes) / read_rate;
  }
};

// `cache_bytes`: keys and values of the longest sequence. Error: the file cannot be read.
Result<MemoryForecast> forecast_memory(const ModelFile& model, int64_t limit, int64_t cache_bytes);

}  // namespace outrider
