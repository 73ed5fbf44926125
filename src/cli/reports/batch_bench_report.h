// SPDX-License-Identifier: Apache-2.0
// What prompts decoded together took, and its figures.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

struct BatchMeasurement {
  int concurrency = 0;
  std::vector<double> plain_rates, speculative_rates;  // tokens per second, prompts included; by round
  SpeculationStats stats;                              // of all speculative runs
  double draft_share = 0;                              // of the speculative runs' time
  bool identical = true;                               // both outputs, in every round
};

struct BatchBench {
  EngineInfo info;
  SpeculativeOptions speculation;
  int64_t max_tokens = 0;
  bool compared = true;  // false where the output may differ
  std::vector<BatchMeasurement> measurements;
};

nlohmann::ordered_json batch_bench_json(const BatchBench& bench);
std::string batch_bench_text(const BatchBench& bench);

}  // namespace outrider
