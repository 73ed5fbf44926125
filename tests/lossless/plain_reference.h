// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outrider/engine.h"
#include "tests/lossless/hash_model.h"

namespace outrider {

struct Expected {
  std::vector<TokenId> tokens;
  std::string text;
  FinishReason reason = FinishReason::kLength;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;  // empty if the request wants none
};

// Plain decoding, one token at a time, over whole texts: no pages, no trees, no incremental state.
Expected plain_output(const HashModel& model, const Request& request, int64_t context);

}  // namespace outrider
