// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/message_text.h"
#include "config/methods.h"

namespace outrider {
namespace {

nlohmann::ordered_json identical_json(const BenchSetup& setup, const Figures& figures) {
  if (!setup.compared) return nullptr;
  return figures.differing == 0;
}

std::string identical_text(const BenchSetup& setup, const Figures& figures) {
  if (!setup.compared && !figures.stats.lossless) return "not compared: the acceptance rule is lossy";
  if (!setup.compared)
    return "not compared: this acceptance rule keeps the distribution of sampled text, not the text";
  if (figures.differing == 0) return fmt::format("identical, all {} prompts", figures.prompts);
  return fmt::format("DIFFERENT for {} of {} prompts", figures.differing, figures.prompts);
}

bool has_own_tree(const SpeculativeOptions& speculation) {
  return method_row(speculation.decoding_type).has_own_tree;
}

std::string tree_text(const SpeculativeOptions& speculation) {
  if (has_own_tree(speculation)) return "trees of its own";
  switch (speculation.tree.kind) {
    case TreeKind::kChain:
      return fmt::format("chains of at most {} tokens", speculation.max_draft_len);
    case TreeKind::kDynamic:
      return fmt::format("dynamic trees of at most {} tokens in {} levels",
                         speculation.tree.max_total_draft_tokens, speculation.max_draft_len);
    case TreeKind::kStatic:
    case TreeKind::kChoices:
      return fmt::format("{} trees of at most {} levels", tree_kind_name(speculation.tree.kind),
                         speculation.max_draft_len);
  }
  return "";
}

std::string table_row(std::string_view name, const Figures& figures) {
  const std::string accepted =
      figures.stats.drafted == 0 ? "-" : fmt::format("{:.1f}%", 100 * figures.acceptance_rate());
  return fmt::format("{:<16} {:>7} {:>10.1f} {:>10.1f} {:>8.2f}x {:>8.2f} {:>9}\n", name, figures.prompts,
                     figures.plain_rate, figures.speculative_rate, figures.ratio_of_medians,
                     figures.stats.acceptance_length(), accepted);
}

std::string speedup_text(const Figures& figures) {
  std::string text = fmt::format("{:.2f}x of the medians, {:.2f}x median of the prompts' own",
                                 figures.ratio_of_medians, figures.median_ratio);
  if (const auto& interval = figures.ratio_interval)
    text += fmt::format(" ({:.2f} to {:.2f}: 95% over prompts)", interval->first, interval->second);
  return text;
}

std::string acceptance_text(const Figures& figures) {
  if (figures.stats.drafted == 0) return "acceptance rate      nothing was drafted\n";
  std::string text =
      fmt::format("acceptance rate      {:.1f}% ({} of {} drafted)\n", 100 * figures.acceptance_rate(),
                  figures.stats.accepted, figures.stats.drafted);
  std::string positions;
  for (const double rate : figures.rate_per_position()) positions += fmt::format(" {:.1f}%", 100 * rate);
  return text + fmt::format("  by position       {}\n", positions);
}

}  // namespace

nlohmann::ordered_json bench_json(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts) {
  const Figures all = over_all(prompts);
  nlohmann::ordered_json json;
  add_engine(json, setup.info);
  json["method"] = snake_name(all.stats.method);
  json["lossless"] = all.stats.lossless;
  json["tree"] = has_own_tree(setup.speculation) ? "own" : tree_kind_name(setup.speculation.tree.kind);
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
                               {"prompt_tokens", prompt.prompt_tokens},
                               {"output_tokens", prompt.output_tokens},
                               {"plain_tokens_per_second", prompt.plain_rate},
                               {"speculative_tokens_per_second", prompt.speculative_rate},
                               {"steps", prompt.stats.steps},
                               {"acceptance_length", prompt.stats.acceptance_length()},
                               {"identical", prompt.identical}});
  }
  return json;
}

std::string bench_text(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts) {
  const Figures all = over_all(prompts);
  std::string text = fmt::format("{}: {}, {} kernels, {} threads; {}, {}\n", setup.info.model_path,
                                 setup.info.weights, setup.info.kernels, setup.info.threads,
                                 snake_name(all.stats.method), tree_text(setup.speculation));
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
  text += fmt::format("\nspeed-up             {}\n", speedup_text(all));
  const std::string margin =
      all.length_margin > 0 ? fmt::format(" ± {:.2f} (95% over prompts)", all.length_margin) : std::string();
  text += fmt::format("acceptance length    {:.2f}{} tokens per target pass, bonus token included\n",
                      all.stats.acceptance_length(), margin);
  text += acceptance_text(all);
  text += fmt::format("per target pass      draft {:.3f} ms, verify {:.3f} ms\n", all.draft_ms_per_pass(),
                      all.verify_ms_per_pass());
  if (all.stats.draft_failures > 0)
    text += fmt::format("drafter failures     {}\n", all.stats.draft_failures);
  text += fmt::format("outputs              {}\n", identical_text(setup, all));
  return text;
}

}  // namespace outrider
