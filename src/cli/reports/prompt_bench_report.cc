// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/prompt_bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/reports/bench_figures.h"

namespace outrider {
namespace {

double rate_of(const PromptTimes& prompt) { return 1000.0 * prompt.tokens / median(prompt.ms); }

}  // namespace

nlohmann::ordered_json prompt_bench_json(const PromptBench& bench) {
  nlohmann::ordered_json json;
  json["bench"] = "prompts";
  add_engine(json, bench.info);
  json["prompts"] = nlohmann::ordered_json::array();
  for (const PromptTimes& prompt : bench.prompts) {
    json["prompts"].push_back({{"tokens", prompt.tokens},
                               {"median_ms", median(prompt.ms)},
                               {"min_ms", *std::ranges::min_element(prompt.ms)},
                               {"tokens_per_second", rate_of(prompt)},
                               {"ms", prompt.ms}});
  }
  return json;
}

std::string prompt_bench_text(const PromptBench& bench) {
  const size_t rounds = bench.prompts.empty() ? 0 : bench.prompts.front().ms.size();
  std::string text =
      fmt::format("{}: {}, {} kernels, {} threads; time to the first token, medians of {} rounds\n\n",
                  bench.info.model_path, bench.info.weights, bench.info.kernels, bench.info.threads, rounds);
  text += fmt::format("{:>8} {:>10} {:>10} {:>10}\n", "tokens", "ms", "least ms", "tokens/s");
  for (const PromptTimes& prompt : bench.prompts) {
    text += fmt::format("{:>8} {:>10.2f} {:>10.2f} {:>10.1f}\n", prompt.tokens, median(prompt.ms),
                        *std::ranges::min_element(prompt.ms), rate_of(prompt));
  }
  return text;
}

}  // namespace outrider
