// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/bench_figures.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace outrider {
namespace {

void add_counts(std::vector<int64_t>& sum, const std::vector<int64_t>& counts) {
  if (sum.size() < counts.size()) sum.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

void add_stats(SpeculationStats& sum, const SpeculationStats& stats) {
  sum.method = stats.method;
  sum.lossless = stats.lossless;
  sum.steps += stats.steps;
  sum.drafted += stats.drafted;
  sum.accepted += stats.accepted;
  sum.committed += stats.committed;
  sum.draft_failures += stats.draft_failures;
  sum.draft_ms += stats.draft_ms;
  sum.verify_ms += stats.verify_ms;
  add_counts(sum.drafted_per_position, stats.drafted_per_position);
  add_counts(sum.accepted_per_position, stats.accepted_per_position);
}

// Half of the 95% interval of tokens per pass, a ratio of two sums over prompts: Student's interval of the
// prompts' residuals (the ratio estimator of survey sampling).
double length_margin(const std::vector<const PromptMeasurement*>& prompts, const SpeculationStats& sum) {
  if (prompts.size() < 2 || sum.steps == 0) return 0;
  double squares = 0;
  for (const PromptMeasurement* prompt : prompts) {
    const double residual = static_cast<double>(prompt->stats.committed) -
                            sum.acceptance_length() * static_cast<double>(prompt->stats.steps);
    squares += residual * residual;
  }
  const auto count = static_cast<double>(prompts.size());
  const double deviation = std::sqrt(squares * count / (count - 1)) / static_cast<double>(sum.steps);
  return deviation * boost::math::quantile(boost::math::students_t(count - 1), 0.975);
}

nlohmann::ordered_json interval_json(const std::optional<std::pair<double, double>>& interval) {
  if (!interval) return nullptr;
  return {interval->first, interval->second};
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<std::pair<double, double>> median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const boost::math::binomial below(static_cast<double>(values.size()), 0.5);
  std::optional<std::pair<double, double>> interval;
  // The median is below the value of rank i, from 0, with probability P(X <= i).
  for (size_t i = 0; i < values.size() / 2; ++i) {
    if (boost::math::cdf(below, static_cast<double>(i)) > 0.025) break;
    interval = {values[i], values[values.size() - 1 - i]};
  }
  return interval;
}

Figures figures_of(const std::vector<const PromptMeasurement*>& prompts) {
  Figures figures;
  figures.prompts = prompts.size();
  std::vector<double> plain, speculative, ratios;
  for (const PromptMeasurement* prompt : prompts) {
    add_stats(figures.stats, prompt->stats);
    figures.output_tokens += prompt->output_tokens;
    figures.differing += prompt->identical ? 0 : 1;
    if (prompt->plain_rate <= 0 || prompt->speculative_rate <= 0) continue;
    plain.push_back(prompt->plain_rate);
    speculative.push_back(prompt->speculative_rate);
    ratios.push_back(prompt->speculative_rate / prompt->plain_rate);
  }
  figures.length_margin = length_margin(prompts, figures.stats);
  figures.plain_rate = median(plain);
  figures.speculative_rate = median(speculative);
  figures.ratio_of_medians = figures.plain_rate > 0 ? figures.speculative_rate / figures.plain_rate : 0;
  figures.median_ratio = median(ratios);
  figures.ratio_interval = median_interval(std::move(ratios));
  return figures;
}

std::vector<std::pair<std::string, Figures>> by_category(const std::vector<PromptMeasurement>& prompts) {
  std::map<std::string, std::vector<const PromptMeasurement*>> groups;
  for (const PromptMeasurement& prompt : prompts) groups[prompt.category].push_back(&prompt);
  std::vector<std::pair<std::string, Figures>> result;
  for (const auto& [category, members] : groups) result.emplace_back(category, figures_of(members));
  return result;
}

Figures over_all(const std::vector<PromptMeasurement>& prompts) {
  std::vector<const PromptMeasurement*> all;
  for (const PromptMeasurement& prompt : prompts) all.push_back(&prompt);
  return figures_of(all);
}

void add_engine(nlohmann::ordered_json& json, const EngineInfo& info) {
  json["model"] = info.model_path;
  json["weights"] = info.weights;
  json["device"] = info.device;
  json["device_steps"] = info.device_steps;
  json["host_layers"] = info.host_layers;
  json["host_experts"] = info.host_experts;
  json["kernels"] = info.kernels;
  json["threads"] = info.threads;
  json["pinned"] = info.is_pinned;
  json["maps_weights"] = info.maps_weights;
  json["streamed_bytes"] = info.streamed_bytes;
  json["read_rate"] = info.read_rate;
}

nlohmann::ordered_json figures_json(const Figures& figures) {
  return {{"prompts", figures.prompts},
          {"output_tokens", figures.output_tokens},
          {"plain_tokens_per_second", figures.plain_rate},
          {"speculative_tokens_per_second", figures.speculative_rate},
          {"speedup", figures.ratio_of_medians},
          {"speedup_median_of_prompts", figures.median_ratio},
          {"speedup_median_interval", interval_json(figures.ratio_interval)},
          {"steps", figures.stats.steps},
          {"drafted", figures.stats.drafted},
          {"accepted", figures.stats.accepted},
          {"acceptance_length", figures.stats.acceptance_length()},
          {"acceptance_length_margin", figures.length_margin},
          {"acceptance_rate", figures.acceptance_rate()},
          {"acceptance_rate_per_position", figures.rate_per_position()},
          {"draft_ms_per_step", figures.draft_ms_per_pass()},
          {"verify_ms_per_step", figures.verify_ms_per_pass()},
          {"draft_failures", figures.stats.draft_failures}};
}

}  // namespace outrider
