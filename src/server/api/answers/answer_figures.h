// SPDX-License-Identifier: Apache-2.0
// Counts and times of an answer: usage, vLLM's "metrics", llama-server's "timings".
#pragma once

#include <string>
#include <vector>

#include "server/api/choice_delta.h"
#include "server/api/json_writer.h"

namespace outrider {

// Token counts of one choice.
struct ChoiceFigures {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  // Both are about the request's prediction, see Completion.
  int64_t accepted_prediction_tokens = 0;
  int64_t rejected_prediction_tokens = 0;
  std::vector<int64_t> acceptance_histogram;  // [j]: number of steps that drafted and accepted j tokens

  void add(const ChoiceDelta& delta);
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  bool has_prediction = false;
  int64_t accepted_prediction_tokens = 0;
  int64_t rejected_prediction_tokens = 0;
};

// Writes the two members about the request's prediction.
template <typename Counts>
void write_prediction_counts(JsonWriter& json, const Counts& counts) {
  json.member("accepted_prediction_tokens", counts.accepted_prediction_tokens);
  json.member("rejected_prediction_tokens", counts.rejected_prediction_tokens);
}

void write_usage(JsonWriter& json, const Usage& usage);
// Writes the members "metrics" and "timings" for a call with one choice.
void write_figures(JsonWriter& json, const ChoiceFigures& figures, const Completion& completion);

}  // namespace outrider
