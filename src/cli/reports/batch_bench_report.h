// SPDX-License-Identifier: Apache-2.0
// The results of `bench --batch`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

struct BatchMeasurement {
  int concurrency = 0;
  std::vector<double> plain_rates, speculative_rates;  // tokens per second per round, including prompts
  SpeculationStats stats;                              // over all speculative runs
  double draft_share = 0;                              // drafting time as a share of the speculative runs
  bool identical = true;                               // whether both outputs are equal in every round
  int64_t steps = 0;                                   // of the engine, over all speculative runs
  double ms = 0;                                       // that these took
  int64_t foreseen = 0;                                // drafts in them, see EngineStatus::foreseen_drafts
  std::optional<DeviceOrders> device = {};             // in them; nullopt: the processor computes
};

struct BatchBench {
  EngineInfo info;
  SpeculativeOptions speculation;
  int64_t max_tokens = 0;
  bool compared = true;  // false if outputs may differ
  std::vector<BatchMeasurement> measurements;
};

nlohmann::ordered_json batch_bench_json(const BatchBench& bench);
std::string batch_bench_text(const BatchBench& bench);

}  // namespace outrider
