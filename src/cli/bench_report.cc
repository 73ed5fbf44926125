// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "config/message_text.h"

namespace outrider {
namespace {

// Figures over a set of prompts.
struct Figures {
  size_t prompts = 0;
  double plain_rate = 0;
  double speculative_rate = 0;
  double ratio_of_medians = 0;
  double median_ratio = 0;  // median of each prompt's own speed-up
  SpeculationStats stats;   // summed
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
  figures.plain_rate = median(plain);
  figures.speculative_rate = median(speculative);
  figures.ratio_of_medians = figures.plain_rate > 0 ? figures.speculative_rate / figures.plain_rate : 0;
  figures.median_ratio = median(ratios);
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

nlohmann::ordered_json figures_json(const Figures& figures) {
  return {{"prompts", figures.prompts},
          {"output_tokens", figures.output_tokens},
          {"plain_tokens_per_second", figures.plain_rate},
          {"speculative_tokens_per_second", figures.speculative_rate},
          {"speedup", figures.ratio_of_medians},
          {"speedup_median_of_prompts", figures.median_ratio},
          {"steps", figures.stats.steps},
          {"drafted", figures.stats.drafted},
          {"accepted", figures.stats.accepted},
          {"acceptance_length", figures.stats.acceptance_length()},
          {"acceptance_rate", figures.acceptance_rate()},
          {"acceptance_rate_per_position", figures.rate_per_position()},
          {"draft_ms_per_step", figures.draft_ms_per_pass()},
          {"verify_ms_per_step", figures.verify_ms_per_pass()},
          {"draft_failures", figures.stats.draft_failures}};
}

nlohmann::ordered_json identical_json(const BenchSetup& setup, const Figures& figures) {
  if (!setup.compared) return nullptr;
  return figures.differing == 0;
}

std::string identical_text(const BenchSetup& setup, const Figures& figures) {
  if (!setup.compared && !figures.stats.lossless) return "not compared: the acceptance rule is lossy";
  if (!setup.compared) return "not compared: the rejection rule keeps the law of sampled text, not the text";
  if (figures.differing == 0) return fmt::format("identical, all {} prompts", figures.prompts);
  return fmt::format("DIFFERENT for {} of {} prompts", figures.differing, figures.prompts);
}

std::string table_row(std::string_view name, const Figures& figures) {
  return fmt::format("{:<16} {:>7} {:>10.1f} {:>10.1f} {:>8.2f}x {:>8.2f} {:>8.1f}%\n", name, figures.prompts,
                     figures.plain_rate, figures.speculative_rate, figures.ratio_of_medians,
                     figures.stats.acceptance_length(), 100 * figures.acceptance_rate());
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

nlohmann::ordered_json bench_json(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts) {
  const Figures all = over_all(prompts);
  nlohmann::ordered_json json;
  json["model"] = setup.info.model_path;
  json["weights"] = setup.info.weights;
  json["kernels"] = setup.info.kernels;
  json["threads"] = setup.info.threads;
  json["pinned"] = setup.info.is_pinned;
  json["maps_weights"] = setup.info.maps_weights;
  json["method"] = snake_name(all.stats.method);
  json["lossless"] = all.stats.lossless;
  json["max_draft_len"] = setup.speculation.max_draft_len;
  json["speculative_model"] = setup.speculation.speculative_model.string();
  if (setup.synthetic_acceptance) json["synthetic_acceptance"] = *setup.synthetic_acceptance;
  json["runs"] = setup.runs;
  json["max_tokens"] = setup.max_tokens;
  json["identical"] = identical_json(setup, all);
  json.update(figures_json(all));
  json["categories"] = nlohmann::ordered_json::object();
  for (const auto& [category, figures] : by_category(prompts))
    json["categories"][category] = figures_json(figures);
  json["results"] = nlohmann::ordered_json::array();
  for (const PromptMeasurement& prompt : prompts) {
    json["results"].push_back({{"id", prompt.id},
                               {"category", prompt.category},
                               {"output_tokens", prompt.output_tokens},
                               {"plain_tokens_per_second", prompt.plain_rate},
                               {"speculative_tokens_per_second", prompt.speculative_rate},
                               {"acceptance_length", prompt.stats.acceptance_length()},
                               {"identical", prompt.identical}});
  }
  return json;
}

std::string bench_text(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts) {
  const Figures all = over_all(prompts);
  std::string text = fmt::format(
      "{}: {}, {} kernels, {} threads; {} with max_draft_len {}\n", setup.info.model_path, setup.info.weights,
      setup.info.kernels, setup.info.threads, snake_name(all.stats.method), setup.speculation.max_draft_len);
  text += fmt::format(
      "{} prompts, at most {} tokens each, medians of {} runs, tokens per second after the prompt\n\n",
      prompts.size(), setup.max_tokens, setup.runs);
  if (setup.synthetic_acceptance) {
    text += fmt::format("drafted tokens were replaced: right with probability {}\n\n",
                        *setup.synthetic_acceptance);
  }
  text += fmt::format("{:<16} {:>7} {:>10} {:>10} {:>9} {:>8} {:>9}\n", "", "prompts", "plain", "spec.",
                      "speed-up", "length", "accepted");
  const auto categories = by_category(prompts);
  if (categories.size() > 1) {
    for (const auto& [category, figures] : categories) text += table_row(category, figures);
  }
  text += table_row("all", all);
  text += fmt::format("\nspeed-up             {:.2f}x of the medians, {:.2f}x median of the prompts' own\n",
                      all.ratio_of_medians, all.median_ratio);
  text += fmt::format("acceptance length    {:.2f} tokens per target pass, bonus token included\n",
                      all.stats.acceptance_length());
  text += fmt::format("acceptance rate      {:.1f}% ({} of {} drafted)\n", 100 * all.acceptance_rate(),
                      all.stats.accepted, all.stats.drafted);
  std::string positions;
  for (double rate : all.rate_per_position()) positions += fmt::format(" {:.1f}%", 100 * rate);
  text += fmt::format("  by position       {}\n", positions);
  text += fmt::format("per target pass      draft {:.3f} ms, verify {:.3f} ms\n", all.draft_ms_per_pass(),
                      all.verify_ms_per_pass());
  if (all.stats.draft_failures > 0)
    text += fmt::format("drafter failures     {}\n", all.stats.draft_failures);
  text += fmt::format("outputs              {}\n", identical_text(setup, all));
  return text;
}

}  // namespace outrider
