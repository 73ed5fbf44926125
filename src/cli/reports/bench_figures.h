// SPDX-License-Identifier: Apache-2.0
// Figures over the prompts of a benchmark. Acceptance length is tokens committed per target pass, including
// the bonus token.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// One prompt, decoded plainly and speculatively.
struct PromptMeasurement {
  std::string id;
  std::string category;
  double plain_rate = 0;  // tokens per second after the prompt's pass, median over runs; 0: too short
  double speculative_rate = 0;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  bool identical = true;   // whether both outputs are equal in every run
  SpeculationStats stats;  // of one speculative run
};

// Figures over a set of prompts.
struct Figures {
  size_t prompts = 0;
  double plain_rate = 0;
  double speculative_rate = 0;
  double ratio_of_medians = 0;
  double median_ratio = 0;  // median of the prompts' speed-ups
  // The 95% interval of that median, whatever the distribution; nullopt: too few prompts.
  std::optional<std::pair<double, double>> ratio_interval;
  SpeculationStats stats;  // sums
  double length_margin =
      0;  // half of the 95% interval of the acceptance length over prompts; 0: fewer than two
  int64_t output_tokens = 0;
  int64_t differing = 0;

  double acceptance_rate() const { return ratio(stats.accepted, stats.drafted); }
  double draft_ms_per_pass() const { return per_pass(stats.draft_ms); }
  double verify_ms_per_pass() const { return per_pass(stats.verify_ms); }
  std::vector<double> rate_per_position() const {
    std::vector<double> rates;
    for (size_t i = 0; i < stats.drafted_per_position.size(); ++i) {
      rates.push_back(ratio(stats.accepted_per_position[i], stats.drafted_per_position[i]));
    }
    return rates;
  }

  static double ratio(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

 private:
  double per_pass(double ms) const { return stats.steps == 0 ? 0 : ms / static_cast<double>(stats.steps); }
};

double median(std::vector<double> values);  // 0: no values
// The narrowest pair of values of equal ranks from both ends that holds the median of their distribution with
// 95 % or more (Conover, Practical Nonparametric Statistics); nullopt: fewer than six values.
std::optional<std::pair<double, double>> median_interval(std::vector<double> values);

Figures figures_of(const std::vector<const PromptMeasurement*>& prompts);
Figures over_all(const std::vector<PromptMeasurement>& prompts);
std::vector<std::pair<std::string, Figures>> by_category(const std::vector<PromptMeasurement>& prompts);
// Adds the model and how it is computed: weights, kernels, threads.
void add_engine(nlohmann::ordered_json& json, const EngineInfo& info);
nlohmann::ordered_json figures_json(const Figures& figures);

}  // namespace outrider
