// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "config/methods.h"
#include "config/speculative_config.h"

namespace outrider {
namespace {

constexpr double kGain = 1.03;  // less is noise

// As one word of a shell.
std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:+@,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// `speculative`: empty where the command chooses by itself.
std::string command_text(const std::string& model, std::string_view speculative) {
  std::string command = fmt::format("outrider chat {}", shell_word(model));
  if (!speculative.empty()) command += fmt::format(" --speculative {}", shell_word(speculative));
  return command;
}

std::string gain_text(const Figures& figures, bool compared) {
  std::string text = fmt::format("{:.2f} times plain speed", figures.median_ratio);
  if (const auto& interval = figures.ratio_interval)
    text += fmt::format(" ({:.2f} to {:.2f}: 95% over prompts)", interval->first, interval->second);
  return text + (compared ? ", the same text" : ", texts not compared");
}

Advice plain_advice(const std::string& model, const std::string& gain) {
  return {.use = "plain decoding: drafts gain nothing on these prompts",
          .gain = gain,
          .command = command_text(model, method_key(Method::kNone))};
}

}  // namespace

std::optional<Advice> advice_of(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts) {
  const Figures all = over_all(prompts);
  const bool drafts = setup.speculation.decoding_type != Method::kNone;
  if (!drafts || setup.synthetic_acceptance || setup.is_random || prompts.empty() || all.differing > 0)
    return std::nullopt;
  const std::string& model = setup.info.model_path;
  if (all.stats.drafted == 0) return plain_advice(model, "nothing was drafted");
  if (all.median_ratio < kGain) return plain_advice(model, gain_text(all, setup.compared) + " with drafts");
  const std::string drafters = fmt::format("{}", fmt::join(setup.info.sources, "+"));
  return Advice{.use = drafters + (setup.is_unasked ? ", which Outrider chooses by itself" : ""),
                .gain = gain_text(all, setup.compared),
                .command = command_text(model, setup.is_unasked ? "" : speculative_text(setup.asked))};
}

std::optional<Advice> advice_of(const Comparison& comparison) {
  const std::string& model = comparison.info.model_path;
  const ContenderResult* best = nullptr;
  double best_gain = 0;
  for (const ContenderResult& result : comparison.results) {
    const Figures all = over_all(result.prompts.front());
    if (all.differing > 0 || all.median_ratio <= best_gain) continue;
    best = &result;
    best_gain = all.median_ratio;
  }
  if (best == nullptr) return std::nullopt;
  const std::string gain = gain_text(over_all(best->prompts.front()), comparison.compared.front());
  if (best_gain < kGain) return plain_advice(model, gain + " with " + best->contender.drafter);
  SpeculativeOptions options = best->contender.options;
  options.is_auto = true;  // the usual policy drafts what pays
  return Advice{.use = fmt::format("{}, {} trees", best->contender.drafter, best->contender.tree),
                .gain = gain,
                .command = command_text(model, speculative_text(options))};
}

std::string advice_text(const std::optional<Advice>& advice) {
  if (!advice) return {};
  return fmt::format("\nuse                  {}\ngain                 {}\ncommand              {}\n",
                     advice->use, advice->gain, advice->command);
}

}  // namespace outrider
