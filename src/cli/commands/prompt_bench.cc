// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/counter_rng.h"
#include "cli/commands/commands.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/prompt_bench_report.h"
#include "cli/terminal.h"
#include "open/parts.h"

namespace outrider {
namespace {

constexpr int64_t kPromptBenchRounds = 5;

Request random_request(int length, int64_t vocab_size, uint64_t& drawn) {
  Request request;
  request.max_tokens = 1;
  request.prompt.resize(static_cast<size_t>(length));
  for (TokenId& token : request.prompt)
    token = static_cast<TokenId>(mix64(drawn++) % static_cast<uint64_t>(vocab_size));
  return request;
}

}  // namespace

Status run_bench_prompts(const Settings& settings) {
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kPlain));
  names.options.speculation = {};
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(std::move(names)));
  PromptBench bench{.info = engine->info()};
  const int longest = *std::ranges::max_element(settings.bench.prompt_lengths);
  if (longest >= bench.info.context) {
    return usage_error(
        fmt::format("--prompt-lengths: {} tokens and an answer need a longer context than {}; raise --ctx",
                    longest, bench.info.context));
  }
  for (const int length : settings.bench.prompt_lengths) bench.prompts.push_back({.tokens = length});
  const int64_t rounds = settings.bench.runs == 0 ? kPromptBenchRounds : settings.bench.runs;
  ProgressBar progress("bench", (rounds + 1) * std::ssize(bench.prompts));
  uint64_t drawn = 0;
  for (int64_t round = 0; round <= rounds; ++round) {  // round 0 is the warm-up
    for (PromptTimes& prompt : bench.prompts) {
      Request request = random_request(prompt.tokens, bench.info.vocab_size, drawn);
      const double start = now_ms();
      OUTRIDER_TRY([[maybe_unused]] const Completion completion, engine->generate(std::move(request)));
      if (round > 0) prompt.ms.push_back(now_ms() - start);
      progress.advance();
    }
  }
  write_output(settings.json ? json_line(prompt_bench_json(bench)) : prompt_bench_text(bench));
  return {};
}

}  // namespace outrider
