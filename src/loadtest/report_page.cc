// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "loadtest/load_test_report.h"
#include "web/filled_html.h"

namespace outrider {

// The build makes it from report_page/.
extern const std::string_view kReportHtml;

namespace {

using Json = nlohmann::ordered_json;

// The quantiles 0, 0.01, ..., 1, which a plot of the distribution needs.
Json hundredths(std::vector<double> values) {
  Json json = Json::array();
  std::sort(values.begin(), values.end());
  for (int i = 0; i <= 100 && !values.empty(); ++i) json.push_back(quantile(values, i / 100.0));
  return json;
}

Json distributions(const LevelRecord& level) {
  std::vector<double> ttft, tpot, token_latency, gaps, e2e;
  for (const AnswerRecord& request : level.requests) {
    if (!request.succeeded() || request.arrivals.empty()) continue;
    ttft.push_back(request.ttft_ms());
    e2e.push_back(request.e2e_ms());
    if (const auto ms = request.tpot_ms()) tpot.push_back(*ms);
    for (const TokenLatency& latency : token_latencies(request)) token_latency.push_back(latency.ms);
    for (const double gap : chunk_gaps(request)) gaps.push_back(gap);
  }
  return {{"ttft_ms", hundredths(std::move(ttft))},
          {"tpot_ms", hundredths(std::move(tpot))},
          {"token_latency_ms", hundredths(std::move(token_latency))},
          {"chunk_gap_ms", hundredths(std::move(gaps))},
          {"e2e_ms", hundredths(std::move(e2e))}};
}

// Token latency over time: [seconds, median, 99th percentile] for each slice of the level that has tokens.
Json timeline(const LevelRecord& level) {
  constexpr size_t kSlices = 120;
  std::vector<std::vector<double>> slices(kSlices);
  for (const AnswerRecord& request : level.requests) {
    if (!request.succeeded()) continue;
    for (const TokenLatency& latency : token_latencies(request)) {
      const double share = level.duration_ms > 0 ? latency.at_ms / level.duration_ms : 0;
      const auto slice = static_cast<size_t>(std::max(0.0, share) * kSlices);
      slices[std::min(slice, kSlices - 1)].push_back(latency.ms);
    }
  }
  Json json = Json::array();
  for (size_t i = 0; i < kSlices; ++i) {
    std::vector<double>& values = slices[i];
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    const double middle_s = (static_cast<double>(i) + 0.5) / kSlices * level.duration_ms / 1e3;
    json.push_back({middle_s, quantile(values, 0.5), quantile(values, 0.99)});
  }
  return json;
}

}  // namespace

std::string load_test_html(const LoadTestPlan& plan, const LoadTestOutcome& outcome) {
  Json json = load_test_json(plan, outcome);
  for (size_t i = 0; i < outcome.levels.size(); ++i) {
    Json& level = json["levels"][i];
    level["name"] = outcome.levels[i].level.name();
    level["distributions"] = distributions(outcome.levels[i]);
    level["timeline"] = timeline(outcome.levels[i]);
    level.erase("requests");
  }
  return filled_html(kReportHtml, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace outrider
