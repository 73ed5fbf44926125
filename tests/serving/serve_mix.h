// SPDX-License-Identifier: Apache-2.0
// An engine that is short of pages, for many requests of every kind at once, with and without HTTP.
#pragma once

#include <string>

#include "config/methods.h"
#include "outrider/engine.h"
#include "tests/lossless/lossless.h"

namespace outrider {

inline constexpr int kConcurrent = 32;
inline constexpr int kPageSize = 16;
inline constexpr double kShareOfDemand =
    0.3;  // pages, as a fraction of the pages that all requests together need

// drafter: a decoding type or "auto"
inline EngineOptions mix_options(const std::string& drafter) {
  EngineOptions options;
  options.model = default_target();
  options.threads = 2;
  options.context = 320;
  options.page_size = kPageSize;
  options.prefill_chunk = 48;
  options.max_batch = kConcurrent;
  options.speculation.speculative_model = default_draft();
  options.speculation.is_auto = drafter == "auto";
  options.speculation.decoding_type = *find_method(drafter);
  return options;
}

}  // namespace outrider
