// SPDX-License-Identifier: Apache-2.0
#include "tests/chaos/chaos_runs.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "config/environment.h"

namespace outrider {

int chaos_runs(int usual) {
  const auto variables = read_environment();
  const auto given = variables.find("OUTRIDER_CHAOS_RUNS");
  return given == variables.end() ? usual : std::atoi(given->second.c_str());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string completion_of(const std::string& prompt, int tokens, bool streams) {
  return nlohmann::json{{"prompt", prompt},
                        {"max_tokens", tokens},
                        {"temperature", 0},
                        {"ignore_eos", true},
                        {"stream", streams}}
      .dump();
}

}  // namespace outrider
