// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "web/filled_html.h"

namespace outrider {

// The build makes it from comparison_page/.
extern const std::string_view kComparisonHtml;

namespace {

using Json = nlohmann::ordered_json;

// The drafter's share of the decoding time.
double draft_share(const SpeculationStats& stats) {
  const double all = stats.draft_ms + stats.verify_ms;
  return all > 0 ? stats.draft_ms / all : 0;
}

Json decoding_json(const std::vector<PromptMeasurement>& prompts, bool compared) {
  const auto with_share = [](const Figures& figures) {
    Json json = figures_json(figures);
    json["draft_share"] = draft_share(figures.stats);
    return json;
  };
  const Figures all = over_all(prompts);
  Json json = with_share(all);
  json["identical"] = compared ? Json(all.differing == 0) : Json(nullptr);
  json["categories"] = Json::object();
  for (const auto& [category, figures] : by_category(prompts))
    json["categories"][category] = with_share(figures);
  return json;
}

std::string megabytes(int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.2f}", static_cast<double>(bytes) / 1e6);
}

std::string setup_text(const Comparison& comparison) {
  const NodeBudget& budget = comparison.budget;
  std::string text = fmt::format("{}: {}, {} kernels, {} threads; at most {} drafted nodes, {} levels\n",
                                 comparison.info.model_path, comparison.info.weights, comparison.info.kernels,
                                 comparison.info.threads, budget.nodes, budget.max_draft_len);
  text += fmt::format(
      "{} prompts, at most {} tokens each, {} rounds over the drafters, each beside plain decoding\n\n",
      comparison.prompts, comparison.max_tokens, comparison.runs);
  if (comparison.skipped_prompts > 0)
    text += fmt::format("{} more prompts were left out: they do not fit into the context\n\n",
                        comparison.skipped_prompts);
  if (!comparison.is_complete) text += "the run ended early: drafters or rounds are missing\n\n";
  return text;
}

std::string row_text(const Comparison& comparison, const ContenderResult& result, size_t width) {
  std::string text = fmt::format("{:<{}} {:<8}", result.contender.drafter, width, result.contender.tree);
  for (size_t d = 0; d < kDecodings.size(); ++d) {
    const Figures all = over_all(result.prompts[d]);
    const char* differs = comparison.compared[d] && all.differing > 0 ? "!" : "";
    text += fmt::format(" {:>5.2f} ± {:.2f} {:>8.2f}x {:>7.1f}%{}", all.stats.acceptance_length(),
                        all.length_margin, all.ratio_of_medians, 100 * draft_share(all.stats), differs);
  }
  return text + fmt::format(" {:>8} {:>8}\n", megabytes(result.memory.weight_bytes),
                            megabytes(result.memory.cache_bytes));
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  std::string text = setup_text(comparison);
  size_t width = 7;
  for (const ContenderResult& result : comparison.results)
    width = std::max(width, result.contender.drafter.size());
  text += fmt::format("{:<{}} {:<8} {:^31} {:^31} {:^17}\n", "", width, "", "greedy",
                      fmt::format("temperature {:g}", comparison.temperature), "memory, MB");
  text += fmt::format("{:<{}} {:<8}", "drafter", width, "tree");
  for (size_t d = 0; d < kDecodings.size(); ++d)
    text += fmt::format(" {:>12} {:>9} {:>8}", "length", "speed-up", "draft");
  text += fmt::format(" {:>8} {:>8}\n", "weights", "cache");
  for (const ContenderResult& result : comparison.results) text += row_text(comparison, result, width);
  text +=
      "\nlength: tokens per target pass, bonus token included, with its 95% interval over prompts; speed-up: "
      "tokens\nper second over plain decoding; draft: its share of the time; memory: the drafter's own "
      "weights and KV cache, for one sequence\n";
  for (const LeftOutDrafter& drafter : comparison.left_out)
    text += fmt::format("left out: {}: {}\n", drafter.path.string(), drafter.reason);
  return text;
}

Json comparison_json(const Comparison& comparison) {
  Json json = {{"model", comparison.info.model_path},
               {"weights", comparison.info.weights},
               {"kernels", comparison.info.kernels},
               {"threads", comparison.info.threads},
               {"nodes", comparison.budget.nodes},
               {"levels", comparison.budget.max_draft_len},
               {"prompts", comparison.prompts},
               {"skipped_prompts", comparison.skipped_prompts},
               {"complete", comparison.is_complete},
               {"max_tokens", comparison.max_tokens},
               {"runs", comparison.runs},
               {"temperature", comparison.temperature}};
  json["drafters"] = Json::array();
  for (const ContenderResult& result : comparison.results) {
    Json row = {{"drafter", result.contender.drafter},
                {"tree", result.contender.tree},
                {"speculative", result.contender.speculative},
                {"weight_bytes", result.memory.weight_bytes},
                {"cache_bytes", result.memory.cache_bytes}};
    for (size_t d = 0; d < kDecodings.size(); ++d)
      row[kDecodingNames[d]] = decoding_json(result.prompts[d], comparison.compared[d]);
    json["drafters"].push_back(std::move(row));
  }
  json["left_out"] = Json::array();
  for (const LeftOutDrafter& drafter : comparison.left_out)
    json["left_out"].push_back({{"name", drafter.path.string()}, {"reason", drafter.reason}});
  return json;
}

std::string comparison_html(const Json& comparison) {
  return filled_html(kComparisonHtml, comparison.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace outrider
