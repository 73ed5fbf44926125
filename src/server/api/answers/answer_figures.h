// SPDX-License-Identifier: Apache-2.0
// Counts and times of an answer: usage, vLLM's "metrics", llama-server's "timings".
#pragma once

#include <string>
#include <vector>

#include "server/api/choice_delta.h"

namespace outrider {

// Token counts of one choice.
struct ChoiceFigures {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  std::vector<int64_t> acceptance_histogram;  // [j]: number of steps that drafted and accepted j tokens

  void add(const ChoiceDelta& delta);
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
};

void append_usage(std::string& out, const Usage& usage);
// Appends ,"metrics":{...},"timings":{...} for a call with one choice.
void append_figures(std::string& out, const ChoiceFigures& figures, const Completion& completion);

}  // namespace outrider
