// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/completion_json.h"
#include "cli/open_engine.h"
#include "cli/prompt_set.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"

namespace outrider {
namespace {

// Repetitions of one prompt; which mode goes first alternates, so that drift of the machine hits both alike.
Result<PromptMeasurement> measure(Engine& engine, Request request, int64_t runs, ProgressBar& progress) {
  PromptMeasurement result;
  std::vector<double> plain_rates, speculative_rates;
  for (int64_t run = 0; run < runs; ++run) {
    TimedCompletion plain, speculative;
    for (int turn = 0; turn < 2; ++turn) {
      request.speculate = (run + turn) % 2 == 1;
      OUTRIDER_TRY((request.speculate ? speculative : plain), generate_timed(engine, request));
      progress.advance();
    }
    plain_rates.push_back(plain.tokens_per_second());
    speculative_rates.push_back(speculative.tokens_per_second());
    result.identical = result.identical && plain.completion.tokens == speculative.completion.tokens;
    result.output_tokens = static_cast<int64_t>(speculative.completion.tokens.size());
    result.stats = std::move(speculative.completion.speculation);
  }
  result.plain_rate = median(plain_rates);
  result.speculative_rate = median(speculative_rates);
  return result;
}

// Brings caches, threads and clock speed to where they stay.
Status warm_up(Engine& engine, Request request) {
  request.max_tokens = std::min<int64_t>(request.max_tokens, 16);
  OUTRIDER_TRY([[maybe_unused]] const Completion completion, engine.generate(std::move(request)));
  return {};
}

Error in_prompt(const PromptRecord& prompt, const Error& error) {
  return {error.kind, fmt::format("prompt {}: {}", prompt.id, error.message)};
}

}  // namespace

Status run_bench(const Settings& settings) {
  OUTRIDER_TRY(const std::vector<PromptRecord> prompts, load_prompts(settings));
  OUTRIDER_TRY(const EngineOptions options, complete_speculative_options(settings));
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, Engine::open(options));
  OUTRIDER_TRY(const auto tokens, tokenize_prompts(prompts, *engine));

  std::vector<PromptMeasurement> measurements;
  {
    ProgressBar progress("bench", static_cast<int64_t>(prompts.size()) * settings.runs * 2);
    Request request = settings.request;
    for (size_t i = 0; i < prompts.size(); ++i) {
      request.prompt = tokens[i];
      if (i == 0) OUTRIDER_RETURN_IF_ERROR(warm_up(*engine, request));
      auto measurement = measure(*engine, request, settings.runs, progress);
      if (!measurement.ok()) return in_prompt(prompts[i], measurement.error());
      measurement->id = prompts[i].id;
      measurement->category = prompts[i].category;
      measurements.push_back(std::move(measurement).value());
    }
  }
  const bool compared =
      settings.engine.acceptance == AcceptanceRule::kCoupled || settings.request.sampling.temperature == 0;
  const BenchSetup setup = {.info = engine->info(),
                            .speculation = options.speculation,
                            .runs = settings.runs,
                            .max_tokens = settings.request.max_tokens,
                            .compared = compared};
  write_output(settings.json ? json_line(bench_json(setup, measurements)) : bench_text(setup, measurements));
  const bool identical = std::all_of(measurements.begin(), measurements.end(),
                                     [](const PromptMeasurement& m) { return m.identical; });
  if (compared && !identical) {
    return Error{ErrorKind::kInput,
                 "speculative output differs from plain output; outrider verify-lossless shows where"};
  }
  return {};
}

}  // namespace outrider
