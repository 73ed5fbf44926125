// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// A completion, and how many of its tokens the pass of its prompt committed. decode_ms excludes the time of
// these tokens.
struct TimedCompletion {
  Completion completion;
  int64_t prompt_pass_tokens = 0;

  // Tokens per second of decoding after the pass of the prompt; 0: no such tokens.
  double tokens_per_second() const;
};

Result<TimedCompletion> generate_timed(Engine& engine, Request request, const ProgressSink& sink = nullptr);

// Runs all requests at once, in batches within the engine's limits. Returns completions in the order of the
// requests.
Result<std::vector<Completion>> generate_together(Engine& engine, std::span<const Request> requests);

}  // namespace outrider
