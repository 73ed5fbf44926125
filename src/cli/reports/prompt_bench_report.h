// SPDX-License-Identifier: Apache-2.0
// The results of `bench --prompt-lengths`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

struct PromptTimes {
  int tokens = 0;
  std::vector<double> ms = {};  // to the first token, per round
};

struct PromptBench {
  EngineInfo info;
  std::vector<PromptTimes> prompts = {};
};

nlohmann::ordered_json prompt_bench_json(const PromptBench& bench);
std::string prompt_bench_text(const PromptBench& bench);

}  // namespace outrider
