// SPDX-License-Identifier: Apache-2.0
// The results of a benchmark as text and JSON.
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
  SpeculativeOptions asked = {};   // as the option and the files found name it
  SpeculativeOptions speculation;  // as it was measured
  int64_t runs = 0;
  int64_t max_tokens = 0;
  std::optional<double> synthetic_acceptance =
      {};                   // the probability with which drafted tokens were replaced by right ones
  bool compared = true;     // false if outputs may differ: sampled under the rejection rule, and lossy rules
  bool is_unasked = false;  // the drafter was chosen by the command and not by an option
  bool is_random = false;   // random weights or prompts
};

// An object with the figures in total, per category and per prompt.
nlohmann::ordered_json bench_json(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);

// A text with the figures in total and per category.
std::string bench_text(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);

}  // namespace outrider
