// SPDX-License-Identifier: Apache-2.0
// What a benchmark measured, as text and JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/reports/bench_figures.h"
#include "outrider/engine.h"

namespace outrider {

struct BenchSetup {
  EngineInfo info;
  SpeculativeOptions speculation;
  int64_t runs = 0;
  int64_t max_tokens = 0;
  std::optional<double> synthetic_acceptance = {};  // the rate at which drafted tokens were made right
  bool compared = true;  // false where the output may differ: rejection rule, sampled; lossy rules
};

// One object with totals, per category and per prompt.
nlohmann::ordered_json bench_json(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);

// The same for people, without the single prompts.
std::string bench_text(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);

}  // namespace outrider
