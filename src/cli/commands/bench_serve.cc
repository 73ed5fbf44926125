// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/prompt_set.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "config/option_value.h"
#include "loadtest/load_test_report.h"
#include "loadtest/load_test_run.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

Result<std::string> read_api_key(const std::filesystem::path& file) {
  if (file.empty()) return std::string();
  OUTRIDER_TRY(const std::string text, read_text_file(file));
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view key = trimmed(line);
    if (!key.empty() && !key.starts_with('#')) return std::string(key);
  }
  return input_error(fmt::format("--api-key-file: expected a key in {}, found none", file.string()));
}

Result<LoadTestPlan> make_plan(const Settings& settings) {
  const LoadOptions& load = settings.load;
  if (load.url.empty()) return usage_error("expected the server's address: --url http://127.0.0.1:8000");
  if (!load.concurrency.empty() && !load.request_rates.empty())
    return usage_error("expected --concurrency or --request-rate, found both");
  LoadTestPlan plan;
  auto server = parse_server_address(load.url);
  if (!server.ok()) return usage_error(fmt::format("--url: {}", server.error().message));
  plan.server = std::move(server).value();
  OUTRIDER_TRY(plan.api_key, read_api_key(load.api_key_file));
  if (!load.goodput.empty()) {
    auto goals = parse_latency_goals(load.goodput);
    if (!goals.ok()) return usage_error(fmt::format("--goodput: {}", goals.error().message));
    plan.goals = *goals;
  }
  OUTRIDER_TRY(std::vector<PromptRecord> prompts, load_prompts(settings));
  for (PromptRecord& prompt : prompts)
    plan.prompts.push_back({.id = std::move(prompt.id), .turns = std::move(prompt.turns)});
  for (const int concurrency : load.concurrency) plan.levels.push_back({.concurrency = concurrency});
  for (const double rate : load.request_rates)
    plan.levels.push_back({.concurrency = 0, .request_rate = rate});
  if (plan.levels.empty()) plan.levels.push_back({.concurrency = 1});
  plan.model = settings.served_model_name;
  plan.endpoint = load.is_chat ? LoadTestEndpoint::kChat : LoadTestEndpoint::kCompletions;
  plan.requests = load.requests;
  plan.duration_s = load.duration;
  plan.warmup = load.warmup;
  plan.max_tokens = settings.request.max_tokens;
  plan.temperature = settings.request.sampling.temperature;
  plan.seed = settings.request.sampling.seed;
  plan.ignore_eos = settings.request.ignore_eos;
  plan.timeout_s = load.timeout;
  return plan;
}

Status check_report_file(const std::filesystem::path& file) {
  if (file.empty()) return {};
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code)) {
    return input_error(
        fmt::format("--output: {} exists and is not a file; choose another FILE", file.string()));
  }
  if (const Status writable = check_writable(file); !writable.ok())
    return io_error(fmt::format("--output: {}", writable.error().message));
  return {};
}

}  // namespace

Status run_bench_serve(const Settings& settings) {
  OUTRIDER_TRY(const LoadTestPlan plan, make_plan(settings));
  OUTRIDER_RETURN_IF_ERROR(check_report_file(settings.output));
  ProgressLine progress;
  OUTRIDER_TRY(const LoadTestOutcome outcome, run_load_test(plan, [&](const LoadTestProgress& now) {
                 progress.show(now.level.name(), now.done);
               }));
  progress.clear();
  if (outcome.is_interrupted) write_error_line("interrupted; what was measured until then follows");
  write_output(settings.json ? json_line(load_test_json(plan, outcome)) : load_test_text(plan, outcome));
  if (!settings.output.empty())
    OUTRIDER_RETURN_IF_ERROR(write_durably(settings.output, load_test_html(plan, outcome)));
  const bool has_answers =
      std::any_of(outcome.levels.begin(), outcome.levels.end(), [](const LevelRecord& level) {
        return std::any_of(level.requests.begin(), level.requests.end(),
                           [](const AnswerRecord& request) { return request.succeeded(); });
      });
  if (!has_answers && !outcome.is_interrupted)
    return io_error("no request was answered; the report says why");
  return {};
}

}  // namespace outrider
