// SPDX-License-Identifier: Apache-2.0
#include "cli/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/comparison_report.h"
#include "cli/completion_json.h"
#include "cli/open_engine.h"
#include "cli/prompt_set.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "device/durable_file.h"
#include "engine/engine_parts.h"
#include "formats/model_file.h"

namespace outrider {
namespace {

constexpr int64_t kDefaultRuns = 3;
constexpr double kDefaultTemperature = 1.0;

// Rates of one contender with one prompt, a number for each run.
struct Rates {
  std::vector<double> plain, speculative;
};

class ComparisonRun {
 public:
  ComparisonRun(const Settings& settings, std::vector<PromptRecord> prompts, EngineOptions options)
      : settings_(settings), prompts_(std::move(prompts)), options_(std::move(options)) {
    options_.max_batch = 1;
    options_.speculation = {};
  }

  Result<Comparison> run() {
    OUTRIDER_TRY(plain_, Engine::open(options_));
    OUTRIDER_TRY(tokens_, tokenize_prompts(prompts_, *plain_));
    describe();
    OUTRIDER_TRY(const std::vector<Contender> field, find_contenders());
    for (const Contender& contender : field) try_out(contender);
    const auto steps = std::ssize(comparison_.results) * std::ssize(kDecodings) * std::ssize(tokens_);
    ProgressBar progress("bench --all", steps * comparison_.runs);
    OUTRIDER_RETURN_IF_ERROR(warm_up());
    for (int64_t round = 0; round < comparison_.runs; ++round) {
      for (size_t i = 0; i < comparison_.results.size(); ++i) {
        OUTRIDER_RETURN_IF_ERROR(run_round(i, round, progress));
      }
    }
    settle_rates();
    return std::move(comparison_);
  }

 private:
  void describe() {
    comparison_.info = plain_->info();
    comparison_.budget = NodeBudget(settings_.draft_nodes);
    comparison_.runs = settings_.runs == 0 ? kDefaultRuns : settings_.runs;
    comparison_.max_tokens = settings_.request.max_tokens;
    comparison_.prompts = std::ssize(tokens_);
    const double asked = settings_.request.sampling.temperature;
    comparison_.temperature = asked > 0 ? asked : kDefaultTemperature;
    const AcceptanceRule rule = acceptance_rule(settings_.engine);
    const bool is_coupled = rule == AcceptanceRule::kCoupled;
    comparison_.compared = {is_coupled || rule == AcceptanceRule::kRejection, is_coupled};
  }

  Result<std::vector<Contender>> find_contenders() {
    OUTRIDER_TRY(const ModelFile target, open_model(options_.model));
    std::vector<std::filesystem::path> folders(settings_.drafter_folders.begin(),
                                               settings_.drafter_folders.end());
    if (folders.empty()) folders.push_back(folder_of(options_.model));
    OUTRIDER_TRY(DrafterSearch search, search_drafters(folders, target));
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

  void try_out(const Contender& contender) {
    const auto parts = open(contender);
    if (!parts.ok()) return leave_out(contender.drafter + ", " + contender.tree, parts.error().message);
    ContenderResult result{.contender = contender, .memory = (*parts)->drafter->memory(), .prompts = {}};
    for (std::vector<PromptMeasurement>& measurements : result.prompts) {
      for (const PromptRecord& prompt : prompts_)
        measurements.push_back({.id = prompt.id, .category = prompt.category, .stats = {}});
    }
    comparison_.results.push_back(std::move(result));
    rates_.emplace_back();
    for (std::vector<Rates>& rates : rates_.back()) rates.resize(prompts_.size());
  }

  Request request_of(size_t prompt, Decoding decoding) const {
    Request request = settings_.request;
    request.prompt = tokens_[prompt];
    request.sampling.temperature = decoding == Decoding::kGreedy ? 0.0 : comparison_.temperature;
    request.sampling.seed += prompt;
    return request;
  }

  // Brings caches, threads and clock speed to where they stay.
  Status warm_up() {
    OUTRIDER_TRY([[maybe_unused]] const TimedCompletion timed,
                 generate_timed(*plain_, request_of(0, Decoding::kGreedy)));
    return {};
  }

  // Every prompt once, plainly right beside it, so that drift of the machine hits both alike. Engines are
  // opened for a round alone: those of all drafters together may not fit into memory.
  Status run_round(size_t index, int64_t round, ProgressBar& progress) {
    ContenderResult& result = comparison_.results[index];
    OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, open(result.contender));
    const auto engine = Engine::assemble(std::move(parts));
    for (size_t d = 0; d < kDecodings.size(); ++d) {
      for (size_t p = 0; p < tokens_.size(); ++p) {
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
    return {};
  }

  void settle_rates() {
    for (size_t i = 0; i < rates_.size(); ++i) {
      for (size_t d = 0; d < kDecodings.size(); ++d) {
        for (size_t p = 0; p < tokens_.size(); ++p) {
          PromptMeasurement& measurement = comparison_.results[i].prompts[d][p];
          measurement.plain_rate = median(rates_[i][d][p].plain);
          measurement.speculative_rate = median(rates_[i][d][p].speculative);
        }
      }
    }
  }

  const Settings& settings_;
  std::vector<PromptRecord> prompts_;
  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
  std::vector<std::vector<TokenId>> tokens_;                              // by prompt
  std::vector<std::array<std::vector<Rates>, kDecodings.size()>> rates_;  // by contender, decoding, prompt
  Comparison comparison_;
};

Status check_together(const Settings& settings) {
  const auto refuse = [](bool given, std::string_view what) -> Status {
    if (!given) return {};
    return usage_error(
        fmt::format("expected --all or {}, found both; --all runs every drafter there is", what));
  };
  OUTRIDER_RETURN_IF_ERROR(refuse(settings.speculation_given, "--speculative"));
  OUTRIDER_RETURN_IF_ERROR(refuse(!settings.shape.empty(), "--shape"));
  OUTRIDER_RETURN_IF_ERROR(refuse(!settings.row_counts.empty(), "--rows"));
  OUTRIDER_RETURN_IF_ERROR(refuse(!settings.batch_sizes.empty(), "--batch"));
  OUTRIDER_RETURN_IF_ERROR(refuse(!settings.trace_file.empty(), "--trace"));
  return refuse(settings.synthetic_acceptance.has_value(), "--synthetic-acceptance");
}

}  // namespace

Result<Comparison> compare_drafters(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_together(settings));
  if (!settings.output.empty()) {
    if (const Status writable = check_writable(settings.output); !writable.ok())
      return io_error(fmt::format("--output: {}", writable.error().message));
  }
  OUTRIDER_TRY(std::vector<PromptRecord> prompts, load_prompts(settings));
  OUTRIDER_TRY(EngineOptions options, complete_engine_options(settings));
  return ComparisonRun(settings, std::move(prompts), std::move(options)).run();
}

Status run_comparison(const Settings& settings) {
  OUTRIDER_TRY(const Comparison comparison, compare_drafters(settings));
  const nlohmann::ordered_json json = comparison_json(comparison);
  write_output(settings.json ? json_line(json) : comparison_text(comparison));
  if (!settings.output.empty())
    OUTRIDER_RETURN_IF_ERROR(write_durably(settings.output, comparison_page(json)));
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

}  // namespace outrider
