// SPDX-License-Identifier: Apache-2.0
// The figures of a load run. Acceptance length counts the bonus token.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "loadtest/load_run.h"

namespace outrider {

struct Spread {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};

// Value at fraction q of sorted values, between two neighbours in proportion; 0 for none.
double quantile(const std::vector<double>& sorted, double q);
Spread spread_of(std::vector<double> values);

struct LevelFigures {
  int64_t succeeded = 0, interrupted = 0;
  std::map<std::string, int64_t> failures;  // by kind: "429"
  int64_t prompt_tokens = 0, output_tokens = 0;
  double duration_s = 0;
  double request_rate = 0, output_rate = 0, total_rate = 0;  // per second
  double goodput = 0;                                        // requests per second that kept all goals
  // Milliseconds; of succeeded requests alone.
  Spread ttft, tpot, token_latency, chunk_gap, e2e;
  std::map<TokenCount, int64_t> counted;         // requests by how their tokens were counted
  std::optional<SpeculationCounts> speculation;  // by /metrics, else by the answers' own figures
  bool speculation_is_servers = false;
};

LevelFigures figures_of(const LevelRecord& level, const LatencyGoals& goals);

std::string_view token_count_name(TokenCount counted);  // "usage"

// One object with figures per level, and every request.
nlohmann::ordered_json load_json(const LoadPlan& plan, const LoadOutcome& outcome);
std::string load_text(const LoadPlan& plan, const LoadOutcome& outcome);
// The same as a page without any network use, with distributions and a timeline.
std::string load_page(const LoadPlan& plan, const LoadOutcome& outcome);

}  // namespace outrider
