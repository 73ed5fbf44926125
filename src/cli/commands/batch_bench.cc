// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/prompt_set.h"
#include "cli/reports/batch_bench_report.h"
#include "cli/reports/bench_report.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {
namespace {

constexpr int64_t kDefaultRounds = 5;
// The number of requests of a run: per concurrent request, and at least.
constexpr size_t kRequestsEach = 4;
constexpr size_t kMinRequests = 8;

struct Run {
  std::vector<std::vector<TokenId>> outputs;
  int64_t tokens = 0;  // committed while `concurrency` requests ran
  double ms = 0;       // duration of these steps
  double draft_ms = 0;
  SpeculationStats stats;
  int64_t steps = 0;                        // of the engine in this time
  int64_t foreseen = 0;                     // drafts of these steps, see EngineStatus::foreseen_drafts
  std::optional<DeviceOrders> device = {};  // in these steps
};

size_t requests_for(int concurrency) {
  return std::max(kMinRequests, static_cast<size_t>(concurrency) * kRequestsEach);
}

// Keeps `concurrency` requests running until there are too few. The end, when the batch empties, is not
// timed, because it depends on the differences between the lengths of requests.
Result<Run> run_together(Engine& engine, const std::vector<Request>& requests, int concurrency) {
  Run run;
  run.outputs.resize(requests.size());
  size_t next = 0, done = 0;
  int64_t tokens = 0;
  const auto submit_next = [&]() -> Status {
    const size_t i = next++;
    OUTRIDER_TRY([[maybe_unused]] const RequestId id,
                 engine.submit(requests[i], [&run, &tokens, &done, i](RequestId, const Progress& progress) {
                   tokens += static_cast<int64_t>(progress.tokens.size());
                   if (progress.completion == nullptr) return;
                   run.outputs[i] = progress.completion->tokens;
                   const SpeculationStats& stats = progress.completion->speculation;
                   run.stats.steps += stats.steps;
                   run.stats.drafted += stats.drafted;
                   run.stats.accepted += stats.accepted;
                   run.stats.committed += stats.committed;
                   ++done;
                 }));
    return {};
  };
  const EngineStatus before = engine.status();
  const double start = now_ms();
  while (done < requests.size()) {
    while (next < requests.size() && next - done < static_cast<size_t>(concurrency))
      OUTRIDER_RETURN_IF_ERROR(submit_next());
    const bool is_full = next - done == static_cast<size_t>(concurrency);
    engine.step();
    if (!is_full) continue;
    run.tokens = tokens;
    run.ms = now_ms() - start;
    const EngineStatus after = engine.status();
    run.draft_ms = after.speculation.draft_ms - before.speculation.draft_ms;
    run.steps = after.steps - before.steps;
    run.foreseen = after.foreseen_drafts - before.foreseen_drafts;
    if (after.device) run.device = *after.device - *before.device;
  }
  return run;
}

// Requests for the prompts from number `first` on. They have a cache scope of their own, so every run
// computes its prompts. The first ones have different lengths, so that later requests begin and end in
// different steps, as on a server.
std::vector<Request> requests_of(const Settings& settings, const std::vector<std::vector<TokenId>>& prompts,
                                 size_t first, int concurrency, uint64_t scope) {
  const size_t count = requests_for(concurrency);
  std::vector<Request> requests(count, settings.request);
  for (int i = 0; i < concurrency; ++i) {
    int64_t& max = requests[static_cast<size_t>(i)].max_tokens;
    max = std::max<int64_t>(1, max * (i + 1) / concurrency);
  }
  for (size_t i = 0; i < count; ++i) {
    requests[i].prompt = prompts[(first + i) % prompts.size()];
    requests[i].sampling.seed += i;
    requests[i].cache_scope = scope;
  }
  return requests;
}

Status measure_round(Engine& engine, std::vector<Request> requests, int64_t round, BatchMeasurement& into) {
  std::array<Run, 2> runs;  // plain, speculative
  for (size_t turn = 0; turn < 2; ++turn) {
    const size_t mode = (static_cast<size_t>(round) + turn) % 2;
    for (Request& request : requests) {
      request.speculation.enabled = mode == 1;
      ++request.cache_scope;
    }
    OUTRIDER_TRY(runs[mode], run_together(engine, requests, into.concurrency));
  }
  into.plain_rates.push_back(static_cast<double>(runs[0].tokens) * 1000.0 / runs[0].ms);
  into.speculative_rates.push_back(static_cast<double>(runs[1].tokens) * 1000.0 / runs[1].ms);
  into.identical = into.identical && runs[0].outputs == runs[1].outputs;
  into.draft_share += runs[1].draft_ms / runs[1].ms;
  into.stats.steps += runs[1].stats.steps;
  into.stats.drafted += runs[1].stats.drafted;
  into.stats.accepted += runs[1].stats.accepted;
  into.stats.committed += runs[1].stats.committed;
  into.steps += runs[1].steps;
  into.foreseen += runs[1].foreseen;
  into.ms += runs[1].ms;
  if (runs[1].device) into.device = into.device.value_or(DeviceOrders()) + *runs[1].device;
  return {};
}

Result<std::vector<std::vector<TokenId>>> load_tokens(const Settings& settings, Engine& engine) {
  if (!settings.shape.empty() && settings.prompts.file.empty())
    return random_prompts(settings.prompts.limit, engine.info().vocab_size);
  OUTRIDER_TRY(auto records, load_prompts(settings));
  OUTRIDER_TRY(PreparedPrompts prompts, prepare_prompts(std::move(records), engine, settings));
  return std::move(prompts.tokens);
}

}  // namespace

Status run_bench_batch(const Settings& settings) {
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  EngineOptions& options = names.options;
  options.calibrate = options.speculation.is_auto;  // figures do not depend on what earlier starts measured
  options.max_batch = std::max(options.max_batch, *std::ranges::max_element(settings.bench.batch_sizes));
  BatchBench bench{.info = {},
                   .speculation = options.speculation,
                   .max_tokens = settings.request.max_tokens,
                   .compared = acceptance_rule(options) == AcceptanceRule::kCoupled,
                   .measurements = {}};
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(std::move(names)));
  bench.info = engine->info();
  OUTRIDER_TRY(const auto prompts, load_tokens(settings, *engine));
  for (const int batch : settings.bench.batch_sizes) bench.measurements.emplace_back().concurrency = batch;
  const int64_t rounds = settings.bench.runs == 0 ? kDefaultRounds : settings.bench.runs;
  ProgressBar progress("bench", rounds * static_cast<int64_t>(settings.bench.batch_sizes.size()));
  uint64_t scope = 1;
  for (int64_t round = 0; round < rounds; ++round) {
    for (BatchMeasurement& measurement : bench.measurements) {
      const size_t first = static_cast<size_t>(round) * requests_for(measurement.concurrency);
      OUTRIDER_RETURN_IF_ERROR(
          measure_round(*engine, requests_of(settings, prompts, first, measurement.concurrency, scope), round,
                        measurement));
      scope += 2;
      progress.advance();
    }
  }
  for (BatchMeasurement& measurement : bench.measurements)
    measurement.draft_share /= static_cast<double>(rounds);
  write_output(settings.json ? json_line(batch_bench_json(bench)) : batch_bench_text(bench));
  const bool identical = std::ranges::all_of(bench.measurements, &BatchMeasurement::identical);
  if (bench.compared && !identical) {
    return Error{ErrorKind::kInput,
                 "speculative output differs from plain output; outrider verify-lossless shows where"};
  }
  return {};
}

}  // namespace outrider
