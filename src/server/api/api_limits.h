// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "outrider/engine.h"

namespace outrider {

// Bounds on one request that are checked before any work is done for it.
struct ApiLimits {
  int json_depth = 64;
  int choices = 16;      // n
  int sequences = 1024;  // n times the number of prompts of a completion
  int stop_strings = 16;
  int stop_bytes = 256;  // of one stop string
  int stop_tokens = 1024;
  int logit_bias = 1024;  // entries
  int bad_words = 256;    // entries of at most stop_bytes each
  int top_logprobs = Request::kMaxLogprobs;
  int64_t prompt_logprobs = 1 << 17;  // of all prompts, choices and ranks of one call together
  int messages = 4096;
  int tools = 1024;
  int grammar_bytes = 256 << 10;
  int64_t default_tokens = 0;  // output of a request that names no number; 0 or less: the rest of the context
  int64_t output_tokens = 0;   // the most that a request may ask for; 0: as many as the context holds
};

}  // namespace outrider
