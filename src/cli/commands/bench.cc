// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/prompt_set.h"
#include "cli/reports/advice.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/trace_html.h"
#include "cli/reports/trace_log.h"
#include "cli/synthetic_drafter.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "formats/random_model.h"
#include "open/parts.h"

namespace outrider {
namespace {

constexpr int64_t kDefaultRuns = 3;

struct Bench {
  std::unique_ptr<Engine> engine;
  SpeculativeOptions asked;                     // as the option and the files found name it
  SpeculativeOptions speculation;               // with the drafter that was found
  std::shared_ptr<SyntheticDrafter> synthetic;  // null: none
};

// Drafts will be right, where they shall be, about this continuation of the prompt.
void expect_continuation(Bench& bench, const Request& request, const Completion& plain) {
  if (bench.synthetic == nullptr) return;
  std::vector<TokenId> expected = request.prompt;
  expected.insert(expected.end(), plain.tokens.begin(), plain.tokens.end());
  bench.synthetic->expect(std::move(expected));
}

// Repeats one prompt. The two modes take turns in going first, so that drift of the machine affects both
// alike.
Result<PromptMeasurement> measure(Bench& bench, Request request, int64_t runs, ProgressBar& progress) {
  PromptMeasurement result;
  std::vector<double> plain_rates, speculative_rates;
  for (int64_t run = 0; run < runs; ++run) {
    TimedCompletion plain, speculative;
    for (int turn = 0; turn < 2; ++turn) {
      request.speculation.enabled = (run + turn) % 2 == 1;
      OUTRIDER_TRY((request.speculation.enabled ? speculative : plain),
                   generate_timed(*bench.engine, request));
      if (!request.speculation.enabled) expect_continuation(bench, request, plain.completion);
      progress.advance();
    }
    plain_rates.push_back(plain.tokens_per_second());
    speculative_rates.push_back(speculative.tokens_per_second());
    result.identical = result.identical && plain.completion.tokens == speculative.completion.tokens;
    result.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    result.output_tokens = static_cast<int64_t>(speculative.completion.tokens.size());
    result.stats = std::move(speculative.completion.speculation);
  }
  result.plain_rate = median(plain_rates);
  result.speculative_rate = median(speculative_rates);
  return result;
}

// Brings caches, threads and clock speed into a steady state. The policy learns from what is drafted here, so
// synthetic drafts have their rate here, too.
Status warm_up(Bench& bench, Request request) {
  request.max_tokens = std::min<int64_t>(request.max_tokens, 16);
  for (const bool speculates : {false, true}) {
    request.speculation.enabled = speculates;
    OUTRIDER_TRY(const Completion completion, bench.engine->generate(request));
    if (!speculates) expect_continuation(bench, request, completion);
  }
  return {};
}

Error in_prompt(const PromptRecord& prompt, const Error& error) {
  return {error.kind, fmt::format("prompt {}: {}", prompt.id, error.message)};
}

bool promises_equal_output(const Settings& settings) {
  const AcceptanceRule rule = acceptance_rule(settings.engine);
  return rule == AcceptanceRule::kCoupled ||
         (is_lossless(rule) && settings.request.sampling.temperature == 0);
}

// Runs every prompt once more for the trace, without measuring, since tracing takes time.
Status trace_all(const Settings& settings, Engine& engine, const PreparedPrompts& prompts) {
  TraceLog log(engine, settings);
  engine.set_trace_sink([&](const StepTrace& trace) { log.add(trace); });
  Request request = settings.request;
  for (size_t i = 0; i < prompts.records.size(); ++i) {
    log.begin_run(prompts.records[i].id);
    request.prompt = prompts.tokens[i];
    OUTRIDER_TRY([[maybe_unused]] const Completion completion, engine.generate(request));
  }
  engine.set_trace_sink(nullptr);
  return write_trace_html(settings.trace_file, log.json());
}

Status check_together(const Settings& settings, const EngineOptions& options) {
  if (!settings.bench.synthetic_acceptance) return {};
  if (options.speculation.decoding_type == Method::kNone) {
    return usage_error("--synthetic-acceptance needs a drafter whose tokens it can replace; found none");
  }
  if (promises_equal_output(settings)) return {};
  return usage_error(
      "--synthetic-acceptance needs output that is the same with and without speculation; leave out "
      "--acceptance or --temperature");
}

Result<Bench> open_bench(const Settings& settings, Names names) {
  OUTRIDER_TRY(OpenedFiles files, open_files(std::move(names)));
  Bench bench;
  OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, open_parts(files));
  bench.asked = files.names.options.speculation;
  bench.speculation = parts->options.speculation;
  if (settings.bench.synthetic_acceptance) {
    bench.synthetic = std::make_shared<SyntheticDrafter>(parts->drafter, *settings.bench.synthetic_acceptance,
                                                         parts->vocab_size);
    parts->drafter = bench.synthetic;
  }
  bench.engine = Engine::assemble(std::move(parts));
  return bench;
}

bool wants_random_prompts(const Settings& settings) {
  const bool is_random = !settings.shape.empty() || is_shape_path(settings.engine.model);
  return is_random && settings.prompts.file.empty();
}

Result<PreparedPrompts> choose_prompts(const Settings& settings, std::vector<PromptRecord> records,
                                       Engine& engine) {
  if (!wants_random_prompts(settings)) return prepare_prompts(std::move(records), engine, settings);
  PreparedPrompts prompts;
  prompts.tokens = random_prompts(settings.prompts.limit, engine.info().vocab_size);
  for (size_t i = 0; i < prompts.tokens.size(); ++i)
    prompts.records.push_back({.id = fmt::format("random-{}", i + 1), .category = "random", .turns = {}});
  return prompts;
}

Result<std::vector<PromptMeasurement>> measure_all(const Settings& settings, Bench& bench,
                                                   const PreparedPrompts& prompts, int64_t runs) {
  std::vector<PromptMeasurement> measurements;
  ProgressBar progress("bench", std::ssize(prompts.records) * runs * 2);
  Request request = settings.request;
  for (size_t i = 0; i < prompts.records.size(); ++i) {
    const PromptRecord& prompt = prompts.records[i];
    request.prompt = prompts.tokens[i];
    if (measurements.empty()) OUTRIDER_RETURN_IF_ERROR(warm_up(bench, request));
    auto measurement = measure(bench, request, runs, progress);
    if (!measurement.ok()) return in_prompt(prompt, measurement.error());
    measurement->id = prompt.id;
    measurement->category = prompt.category;
    measurements.push_back(std::move(measurement).value());
  }
  return measurements;
}

}  // namespace

Status run_bench(const Settings& settings) {
  if (!settings.trace_file.empty()) OUTRIDER_RETURN_IF_ERROR(check_trace_file(settings.trace_file));
  std::vector<PromptRecord> records;
  if (!wants_random_prompts(settings)) {
    OUTRIDER_TRY(records, load_prompts(settings));
  }
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  names.options.calibrate = names.options.speculation.is_auto;  // figures depend on no earlier start
  OUTRIDER_RETURN_IF_ERROR(check_together(settings, names.options));
  OUTRIDER_TRY(Bench bench, open_bench(settings, std::move(names)));
  OUTRIDER_TRY(const auto prompts, choose_prompts(settings, std::move(records), *bench.engine));

  const int64_t runs = settings.bench.runs == 0 ? kDefaultRuns : settings.bench.runs;
  OUTRIDER_TRY(const auto measurements, measure_all(settings, bench, prompts, runs));
  if (!settings.trace_file.empty()) OUTRIDER_RETURN_IF_ERROR(trace_all(settings, *bench.engine, prompts));
  const bool compared = promises_equal_output(settings);
  const BenchSetup setup = {.info = bench.engine->info(),
                            .asked = bench.asked,
                            .speculation = bench.speculation,
                            .runs = runs,
                            .max_tokens = settings.request.max_tokens,
                            .synthetic_acceptance = settings.bench.synthetic_acceptance,
                            .compared = compared,
                            .is_unasked = !settings.speculation_given,
                            .is_random = wants_random_prompts(settings)};
  write_output(settings.json ? json_line(bench_json(setup, measurements))
                             : bench_text(setup, measurements) + advice_text(advice_of(setup, measurements)));
  const bool identical = std::all_of(measurements.begin(), measurements.end(),
                                     [](const PromptMeasurement& m) { return m.identical; });
  if (compared && !identical) {
    return Error{ErrorKind::kInput,
                 "speculative output differs from plain output; outrider verify-lossless shows where"};
  }
  return {};
}

}  // namespace outrider
