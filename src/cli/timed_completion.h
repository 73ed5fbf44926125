// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// A completion and how many of its tokens the prompt's own pass brought; those take none of decode_ms.
struct TimedCompletion {
  Completion completion;
  int64_t prompt_pass_tokens = 0;

  // Tokens after the prompt's pass per second of decoding; 0 when there are none.
  double tokens_per_second() const;
};

Result<TimedCompletion> generate_timed(Engine& engine, Request request, const ProgressSink& sink = nullptr);

// All requests at once, batched as the engine's limits allow; completions in the order of the requests.
Result<std::vector<Completion>> generate_together(Engine& engine, std::span<const Request> requests);

}  // namespace outrider
