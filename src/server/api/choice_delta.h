// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outrider/engine.h"
#include "outrider/trace.h"

namespace outrider {

// The output that one step added to one choice. It owns its data, so it may leave the engine's thread.
struct ChoiceDelta {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<TokenOrigin> origins;
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;  // in the first delta
  std::vector<float> states;                   // see Progress; only for calls that want them
  std::optional<StepTrace> trace;              // only for calls that want traces
  std::optional<Completion> completion;        // in the last delta

  // A delta with only a trace may come before all others.
  bool is_trace_alone() const { return tokens.empty() && !completion; }
};

}  // namespace outrider
