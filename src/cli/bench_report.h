// SPDX-License-Identifier: Apache-2.0
// What a benchmark measured, and its figures. Acceptance length counts the bonus token: tokens committed per
// target pass.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// One prompt, decoded plainly and speculatively.
struct PromptMeasurement {
  std::string id;
  std::string category;
  double plain_rate = 0;  // tokens per second after the prompt's pass, median over runs; 0: nothing to time
  double speculative_rate = 0;  // the same
  int64_t output_tokens = 0;
  bool identical = true;   // both outputs, in every run
  SpeculationStats stats;  // of one speculative run
};

struct BenchSetup {
  EngineInfo info;
  SpeculativeOptions speculation;
  int64_t runs = 0;
  int64_t max_tokens = 0;
  std::optional<double> synthetic_acceptance = {};  // the rate at which drafted tokens were made right
  bool compared = true;  // false where the output may differ: rejection rule, sampled; lossy rules
};

double median(std::vector<double> values);  // 0 for none

// One object with totals, per category and per prompt.
nlohmann::ordered_json bench_json(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);

// The same for people, without the single prompts.
std::string bench_text(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);

}  // namespace outrider
