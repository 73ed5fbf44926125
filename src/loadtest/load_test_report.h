// SPDX-License-Identifier: Apache-2.0
// The figures of a load test. Acceptance length includes the bonus token.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "loadtest/load_test_run.h"

namespace outrider {

struct Spread {
  int64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};

// The quantile q of sorted values, by linear interpolation; 0 if there are none.
double quantile(const std::vector<double>& sorted, double q);
Spread spread_of(std::vector<double> values);

struct LevelFigures {
  int64_t succeeded = 0, interrupted = 0;
  std::map<std::string, int64_t> failures;  // count per kind: "429"
  int64_t prompt_tokens = 0, output_tokens = 0;
  double duration_s = 0;
  double request_rate = 0, output_rate = 0, total_rate = 0;  // per second
  double goodput = 0;                                        // requests per second that met all goals
  // In milliseconds, over the succeeded requests.
  Spread ttft, tpot, token_latency, chunk_gap, e2e;
  std::map<TokenCount, int64_t> counted;         // number of requests per source of token counts
  std::optional<SpeculationCounts> speculation;  // from /metrics, else from the answers
  bool speculation_is_servers = false;
};

LevelFigures figures_of(const LevelRecord& level, const LatencyGoals& goals);

std::string_view token_count_name(TokenCount counted);  // "usage"

// An object with the figures of every level and all requests.
nlohmann::ordered_json load_test_json(const LoadTestPlan& plan, const LoadTestOutcome& outcome);
std::string load_test_text(const LoadTestPlan& plan, const LoadTestOutcome& outcome);
// A self-contained HTML page with the figures, their distributions and a timeline.
std::string load_test_html(const LoadTestPlan& plan, const LoadTestOutcome& outcome);

}  // namespace outrider
