// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/interrupt_guard.h"
#include "cli/commands/commands.h"
#include "cli/prompt_set.h"
#include "cli/reports/advice.h"
#include "cli/reports/comparison_report.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "formats/model_file.h"
#include "open/drafters/drafter_search.h"
#include "open/parts.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kComparisonRuns = 3;
constexpr double kDefaultTemperature = 1.0;

// Rates of one contender with one prompt, in tokens per second, one for each run.
struct Rates {
  std::vector<double> plain, speculative;
};

class ComparisonRun {
 public:
  ComparisonRun(const Settings& settings, std::vector<PromptRecord> prompts, EngineOptions options)
      : settings_(settings), options_(std::move(options)) {
    prompts_.records = std::move(prompts);
    options_.max_batch = 1;
    options_.speculation = {};
  }

  // Calls keep() after every round of a drafter. Error: the reason why the run ended early.
  template <typename Keep>
  Status run(Keep&& keep) {
    OUTRIDER_TRY(plain_, Engine::open(options_));
    OUTRIDER_TRY(prompts_, prepare_prompts(std::move(prompts_.records), *plain_, settings_));
    describe();
    OUTRIDER_TRY(const std::vector<Contender> field, find_contenders());
    for (const Contender& contender : field) add_contender(contender);
    OUTRIDER_RETURN_IF_ERROR(warm_up());
    const auto count = std::ssize(comparison_.results);
    ProgressBar progress("bench --all",
                         count * std::ssize(kDecodings) * comparison_.prompts * comparison_.runs);
    const double start = now_ms();
    for (int64_t done = 0; done < count * comparison_.runs; ++done) {
      const auto index = static_cast<size_t>(done % count);
      OUTRIDER_RETURN_IF_ERROR(run_round(index, done / count, progress));
      comparison_.is_complete = done + 1 == count * comparison_.runs;
      OUTRIDER_RETURN_IF_ERROR(keep());
      if (!error_is_terminal())
        log_progress(index, fmt::format("{} of {}", done + 1, count * comparison_.runs),
                     time_left(now_ms() - start, done + 1, count * comparison_.runs));
    }
    return {};
  }

  // The results of the drafters that finished all prompts at least once.
  Comparison measured() const {
    Comparison comparison = comparison_;
    comparison.results.clear();
    for (size_t i = 0; i < rates_.size(); ++i) {
      if (finished_rounds_[i] > 0) comparison.results.push_back(result_of(i));
    }
    return comparison;
  }

 private:
  void describe() {
    comparison_.info = plain_->info();
    comparison_.budget = NodeBudget(settings_.bench.draft_nodes);
    comparison_.runs = settings_.bench.runs == 0 ? kComparisonRuns : settings_.bench.runs;
    comparison_.max_tokens = settings_.request.max_tokens;
    comparison_.prompts = std::ssize(prompts_.tokens);
    comparison_.skipped_prompts = prompts_.skipped;
    const double asked = settings_.request.sampling.temperature;
    comparison_.temperature = asked > 0 ? asked : kDefaultTemperature;
    const AcceptanceRule rule = acceptance_rule(settings_.engine);
    comparison_.compared = {is_lossless(rule), rule == AcceptanceRule::kCoupled};
  }

  Result<std::vector<Contender>> find_contenders() {
    OUTRIDER_TRY(const ModelFile target, open_model(options_.model));
    const std::vector<std::filesystem::path> folders(settings_.bench.drafter_folders.begin(),
                                                     settings_.bench.drafter_folders.end());
    DrafterSearch search;
    if (folders.empty()) {
      constexpr SearchDepth kAll = {.target_over_draft = 1, .models = 8, .after_heads = true};
      search = find_drafters(target, kAll);
    } else {
      OUTRIDER_TRY(search, search_drafters(folders, target));
    }
    for (LeftOutDrafter& drafter : search.left_out)
      leave_out(std::move(drafter.path), std::move(drafter.reason));
    return contenders(search.found, comparison_.budget);
  }

  void leave_out(std::filesystem::path name, std::string reason) {
    write_error_line(fmt::format("left out: {}: {}", name.string(), reason));
    comparison_.left_out.push_back({std::move(name), std::move(reason)});
  }

  Result<std::unique_ptr<EngineParts>> open(const Contender& contender) const {
    EngineOptions options = options_;
    options.speculation = contender.options;
    return open_parts(std::move(options));
  }

  void add_contender(const Contender& contender) {
    const auto parts = open(contender);
    if (!parts.ok()) return leave_out(contender.drafter + ", " + contender.tree, parts.error().message);
    ContenderResult result{.contender = contender, .memory = (*parts)->drafter->memory(), .prompts = {}};
    for (std::vector<PromptMeasurement>& measurements : result.prompts) {
      for (const PromptRecord& prompt : prompts_.records)
        measurements.push_back({.id = prompt.id, .category = prompt.category, .stats = {}});
    }
    comparison_.results.push_back(std::move(result));
    rates_.emplace_back();
    for (std::vector<Rates>& rates : rates_.back()) rates.resize(prompts_.records.size());
    finished_rounds_.push_back(0);
  }

  Request request_of(size_t prompt, Decoding decoding) const {
    Request request = settings_.request;
    request.prompt = prompts_.tokens[prompt];
    request.sampling.temperature = decoding == Decoding::kGreedy ? 0.0 : comparison_.temperature;
    request.sampling.seed += prompt;
    return request;
  }

  // Brings caches, threads and clock speed into a steady state.
  Status warm_up() {
    OUTRIDER_TRY([[maybe_unused]] const TimedCompletion timed,
                 generate_timed(*plain_, request_of(0, Decoding::kGreedy)));
    return {};
  }

  // Runs every prompt once with the drafter and once plainly, in turn, so that drift of the machine affects
  // both alike. The engine is opened for one round, because the engines of all drafters together may not fit
  // into memory.
  Status run_round(size_t index, int64_t round, ProgressBar& progress) {
    ContenderResult& result = comparison_.results[index];
    OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, open(result.contender));
    const auto engine = Engine::assemble(std::move(parts));
    for (size_t d = 0; d < kDecodings.size(); ++d) {
      for (size_t p = 0; p < prompts_.tokens.size(); ++p) {
        if (InterruptGuard::interrupted()) return input_error("interrupted");
        const Request request = request_of(p, kDecodings[d]);
        TimedCompletion plain, speculative;
        for (int turn = 0; turn < 2; ++turn) {
          const bool is_plain = (round + turn) % 2 == 0;
          OUTRIDER_TRY((is_plain ? plain : speculative),
                       generate_timed(is_plain ? *plain_ : *engine, request));
        }
        Rates& rates = rates_[index][d][p];
        rates.plain.push_back(plain.tokens_per_second());
        rates.speculative.push_back(speculative.tokens_per_second());
        PromptMeasurement& measurement = result.prompts[d][p];
        measurement.identical &= plain.completion.tokens == speculative.completion.tokens;
        measurement.output_tokens = std::ssize(speculative.completion.tokens);
        measurement.stats = std::move(speculative.completion.speculation);
        progress.advance();
      }
    }
    ++finished_rounds_[index];
    return {};
  }

  ContenderResult result_of(size_t index) const {
    ContenderResult result = comparison_.results[index];
    for (size_t d = 0; d < kDecodings.size(); ++d) {
      for (size_t p = 0; p < prompts_.tokens.size(); ++p) {
        result.prompts[d][p].plain_rate = median(rates_[index][d][p].plain);
        result.prompts[d][p].speculative_rate = median(rates_[index][d][p].speculative);
      }
    }
    return result;
  }

  // Writes a line of progress for logs, which cannot show a bar.
  void log_progress(size_t index, std::string_view place, std::string_view left) const {
    const ContenderResult result = result_of(index);
    const Figures greedy = over_all(result.prompts[0]), sampled = over_all(result.prompts[1]);
    write_error_line(fmt::format("{}: {}, {}: greedy length {:.2f}, {:.2f}x; sampled {:.2f}, {:.2f}x; {}",
                                 place, result.contender.drafter, result.contender.tree,
                                 greedy.stats.acceptance_length(), greedy.ratio_of_medians,
                                 sampled.stats.acceptance_length(), sampled.ratio_of_medians, left));
  }

  const Settings& settings_;
  PreparedPrompts prompts_;
  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
  std::vector<int64_t> finished_rounds_;                                  // by contender
  std::vector<std::array<std::vector<Rates>, kDecodings.size()>> rates_;  // by contender, decoding, prompt
  Comparison comparison_;
};

Status check_together(const Settings& settings) {
  if (!settings.speculation_given) return {};
  return usage_error("expected --all or --speculative, found both; --all runs every drafter there is");
}

Status write_report(const std::filesystem::path& path, const Comparison& comparison) {
  const Json json = comparison_json(comparison);
  return write_durably(path, path.extension() == ".json" ? json_line(json) : comparison_html(json));
}

Status check_outputs(const Comparison& comparison) {
  for (const ContenderResult& result : comparison.results) {
    for (size_t d = 0; d < kDecodings.size(); ++d) {
      if (!comparison.compared[d] || over_all(result.prompts[d]).differing == 0) continue;
      return input_error(
          fmt::format("{} output with {} differs from plain output; outrider verify-lossless "
                      "--speculative {} shows where",
                      kDecodingNames[d], result.contender.drafter, result.contender.speculative));
    }
  }
  return {};
}

}  // namespace

Status run_bench_drafters(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_together(settings));
  if (!settings.bench.page.empty()) {
    if (const Status writable = check_writable(settings.bench.page); !writable.ok())
      return io_error(fmt::format("--output: {}", writable.error().message));
  }
  OUTRIDER_TRY(std::vector<PromptRecord> prompts, load_prompts(settings));
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  const InterruptGuard guard({SIGINT, SIGTERM}, InterruptGuard::Repeats::kEndProgram);
  ComparisonRun run(settings, std::move(prompts), std::move(names.options));
  const Status ended = run.run([&]() -> Status {
    return settings.bench.page.empty() ? Status() : write_report(settings.bench.page, run.measured());
  });
  const Comparison comparison = run.measured();
  if (comparison.results.empty()) return ended;
  const Json json = comparison_json(comparison);
  write_output(settings.json ? json_line(json)
                             : comparison_text(comparison) + advice_text(advice_of(comparison)));
  if (!ended.ok()) {
    return Error{ended.error().kind, fmt::format("{}; the drafters measured until then are in the output",
                                                 ended.error().message)};
  }
  return check_outputs(comparison);
}

}  // namespace outrider
