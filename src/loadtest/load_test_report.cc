// SPDX-License-Identifier: Apache-2.0
#include "loadtest/load_test_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

bool keeps(const AnswerRecord& request, const LatencyGoals& goals) {
  return (!goals.ttft || request.ttft_ms() <= *goals.ttft) &&
         (!goals.tpot || request.tpot_ms().value_or(0) <= *goals.tpot) &&
         (!goals.e2e || request.e2e_ms() <= *goals.e2e);
}

Json spread_json(const Spread& spread) {
  return {{"count", spread.count}, {"mean", spread.mean}, {"p50", spread.p50},
          {"p90", spread.p90},     {"p99", spread.p99},   {"max", spread.max}};
}

Json speculation_json(const LevelFigures& figures) {
  if (!figures.speculation) return nullptr;
  const SpeculationCounts& counts = *figures.speculation;
  return {{"source", figures.speculation_is_servers ? "/metrics" : "answers"},
          {"acceptance_length", counts.acceptance_length()},
          {"acceptance_rate", counts.acceptance_rate()},
          {"drafts", counts.steps},
          {"draft_tokens", counts.drafted},
          {"accepted_tokens", counts.accepted},
          {"accepted_tokens_per_position", counts.accepted_per_position}};
}

Json request_json(const AnswerRecord& request) {
  Json json = {{"prompt", request.prompt},
               {"start_ms", request.start_ms},
               {"prompt_tokens", request.prompt_tokens},
               {"output_tokens", request.output_tokens},
               {"ttft_ms", request.ttft_ms()},
               {"tpot_ms", nullptr},
               {"e2e_ms", request.e2e_ms()},
               {"finish_reason", request.finish_reason}};
  if (const auto tpot = request.tpot_ms()) json["tpot_ms"] = *tpot;
  if (!request.failure.empty()) json["failure"] = request.failure;
  if (!request.message.empty()) json["message"] = request.message;
  if (request.is_interrupted) json["interrupted"] = true;
  return json;
}

Json level_json(const LevelRecord& level, const LevelFigures& figures) {
  Json json;
  if (level.level.concurrency > 0) json["concurrency"] = level.level.concurrency;
  if (level.level.request_rate > 0) json["request_rate"] = level.level.request_rate;
  json["peak_concurrency"] = level.peak_concurrency;
  json["duration_s"] = figures.duration_s;
  json["completed"] = figures.succeeded;
  json["failed"] = Json::object();
  for (const auto& [kind, count] : figures.failures) json["failed"][kind] = count;
  json["interrupted"] = figures.interrupted;
  json["prompt_tokens"] = figures.prompt_tokens;
  json["output_tokens"] = figures.output_tokens;
  json["request_throughput"] = figures.request_rate;
  json["output_throughput"] = figures.output_rate;
  json["total_throughput"] = figures.total_rate;
  json["goodput"] = figures.goodput;
  json["ttft_ms"] = spread_json(figures.ttft);
  json["tpot_ms"] = spread_json(figures.tpot);
  json["token_latency_ms"] = spread_json(figures.token_latency);
  json["chunk_gap_ms"] = spread_json(figures.chunk_gap);
  json["e2e_ms"] = spread_json(figures.e2e);
  json["tokens_counted_by"] = Json::object();
  for (const auto& [counted, count] : figures.counted)
    json["tokens_counted_by"][std::string(token_count_name(counted))] = count;
  json["speculation"] = speculation_json(figures);
  return json;
}

Json goals_json(const LatencyGoals& goals) {
  Json json = Json::object();
  if (goals.ttft) json["ttft_ms"] = *goals.ttft;
  if (goals.tpot) json["tpot_ms"] = *goals.tpot;
  if (goals.e2e) json["e2e_ms"] = *goals.e2e;
  return json;
}

std::string line(std::string_view name, std::string_view value) {
  return fmt::format("{:<44} {:>12}\n", name, value);
}
std::string line(std::string_view name, int64_t value) { return line(name, std::to_string(value)); }
std::string line(std::string_view name, double value) { return line(name, fmt::format("{:.2f}", value)); }

std::string heading(std::string_view name, char rule) {
  const size_t width = 57, length = name.size() + 2;
  const size_t left = (width - length) / 2;
  return fmt::format("{} {} {}\n", std::string(left, rule), name, std::string(width - length - left, rule));
}

std::string spread_text(std::string_view title, std::string_view name, const Spread& spread) {
  return heading(title, '-') + line(fmt::format("Mean {} (ms):", name), spread.mean) +
         line(fmt::format("Median {} (ms):", name), spread.p50) +
         line(fmt::format("P90 {} (ms):", name), spread.p90) +
         line(fmt::format("P99 {} (ms):", name), spread.p99);
}

std::string speculation_text(const LevelFigures& figures) {
  const SpeculationCounts& counts = *figures.speculation;
  std::string text = heading("Speculative decoding", '-');
  text += line("Acceptance rate (%):", 100 * counts.acceptance_rate());
  text += line("Acceptance length, bonus token included:", counts.acceptance_length());
  text += line("Drafts:", counts.steps);
  text += line("Draft tokens:", counts.drafted);
  text += line("Accepted tokens:", counts.accepted);
  for (size_t i = 0; i < counts.accepted_per_position.size() && counts.steps > 0; ++i) {
    text += line(
        fmt::format("  Accepted at position {} (% of drafts):", i),
        100.0 * static_cast<double>(counts.accepted_per_position[i]) / static_cast<double>(counts.steps));
  }
  text += line("Source:", figures.speculation_is_servers ? "/metrics" : "answers");
  return text;
}

// One error message of the server for each kind of failure.
std::string failures_text(const LevelRecord& level, const LevelFigures& figures) {
  std::string text;
  for (const auto& [kind, count] : figures.failures) {
    const auto first =
        std::find_if(level.requests.begin(), level.requests.end(),
                     [&kind = kind](const AnswerRecord& request) { return request.failure == kind; });
    text += line(fmt::format("  {}:", kind), count);
    if (!first->message.empty()) text += fmt::format("    {}\n", first->message);
  }
  return text;
}

std::string level_text(const LevelRecord& level, const LevelFigures& figures, const LatencyGoals& goals) {
  int64_t failed = 0;
  for (const auto& [kind, count] : figures.failures) failed += count;
  std::string text = heading(fmt::format("Serving benchmark, {}", level.level.name()), '=');
  text += line("Successful requests:", figures.succeeded);
  text += line("Failed requests:", failed) + failures_text(level, figures);
  if (figures.interrupted > 0) text += line("Interrupted requests:", figures.interrupted);
  text += line("Peak concurrent requests:", static_cast<int64_t>(level.peak_concurrency));
  text += line("Benchmark duration (s):", figures.duration_s);
  text += line("Total input tokens:", figures.prompt_tokens);
  text += line("Total generated tokens:", figures.output_tokens);
  text += line("Request throughput (req/s):", figures.request_rate);
  if (goals.any()) text += line("Request goodput (req/s):", figures.goodput);
  text += line("Output token throughput (tok/s):", figures.output_rate);
  text += line("Total token throughput (tok/s):", figures.total_rate);
  text += spread_text("Time to First Token", "TTFT", figures.ttft);
  text += spread_text("Time per Output Token (excl. 1st token)", "TPOT", figures.tpot);
  text += spread_text("Inter-token Latency, per token", "ITL", figures.token_latency);
  text += spread_text("Gap between chunks, tokens together", "gap", figures.chunk_gap);
  text += spread_text("End-to-end Latency", "E2EL", figures.e2e);
  if (figures.speculation) text += speculation_text(figures);
  text += std::string(57, '=') + "\n";
  for (const auto& [counted, count] : figures.counted) {
    if (counted == TokenCount::kSpread)
      text += fmt::format(
          "{} requests: the server told only the total of tokens; they are spread over the chunks\n", count);
    if (counted == TokenCount::kChunks)
      text += fmt::format("{} requests: the server told no usage; every chunk counts as one token\n", count);
  }
  return text + "\n";
}

}  // namespace

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Spread spread{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return spread;
  for (const double value : values) spread.mean += value;
  spread.mean /= static_cast<double>(values.size());
  spread.p50 = quantile(values, 0.5);
  spread.p90 = quantile(values, 0.9);
  spread.p99 = quantile(values, 0.99);
  spread.max = values.back();
  return spread;
}

LevelFigures figures_of(const LevelRecord& level, const LatencyGoals& goals) {
  LevelFigures figures;
  std::vector<double> ttft, tpot, token_latency, gaps, e2e;
  int64_t good = 0;
  std::optional<SpeculationCounts> told;
  for (const AnswerRecord& request : level.requests) {
    if (!request.failure.empty()) ++figures.failures[request.failure];
    if (request.is_interrupted) ++figures.interrupted;
    if (!request.succeeded()) continue;
    ++figures.succeeded;
    ++figures.counted[request.counted];
    good += keeps(request, goals) ? 1 : 0;
    figures.prompt_tokens += request.prompt_tokens;
    figures.output_tokens += request.output_tokens;
    e2e.push_back(request.e2e_ms());
    if (!request.arrivals.empty()) ttft.push_back(request.ttft_ms());
    if (const auto ms = request.tpot_ms()) tpot.push_back(*ms);
    for (const TokenLatency& latency : token_latencies(request)) token_latency.push_back(latency.ms);
    for (const double gap : chunk_gaps(request)) gaps.push_back(gap);
    if (!request.speculation) continue;
    if (!told) told.emplace();
    told->add(*request.speculation);
  }
  figures.duration_s = level.duration_ms / 1e3;
  if (figures.duration_s > 0) {
    const auto rate = [&](int64_t count) { return static_cast<double>(count) / figures.duration_s; };
    figures.request_rate = rate(figures.succeeded);
    figures.goodput = rate(good);
    figures.output_rate = rate(figures.output_tokens);
    figures.total_rate = rate(figures.prompt_tokens + figures.output_tokens);
  }
  figures.ttft = spread_of(std::move(ttft));
  figures.tpot = spread_of(std::move(tpot));
  figures.token_latency = spread_of(std::move(token_latency));
  figures.chunk_gap = spread_of(std::move(gaps));
  figures.e2e = spread_of(std::move(e2e));
  figures.speculation_is_servers = level.server_speculation.has_value();
  figures.speculation = level.server_speculation ? level.server_speculation : told;
  if (figures.speculation && figures.speculation->steps == 0) figures.speculation.reset();
  return figures;
}

std::string_view token_count_name(TokenCount counted) {
  switch (counted) {
    case TokenCount::kUsage:
      return "usage";
    case TokenCount::kLogprobs:
      return "logprobs";
    case TokenCount::kSpread:
      return "total, spread";
    case TokenCount::kChunks:
      return "chunks";
  }
  return "";
}

Json load_test_json(const LoadTestPlan& plan, const LoadTestOutcome& outcome) {
  Json json = {{"server", plan.server.text()},
               {"model", outcome.model},
               {"endpoint", plan.endpoint == LoadTestEndpoint::kChat ? "chat" : "completions"},
               {"prompts", plan.prompts.size()},
               {"max_tokens", plan.max_tokens},
               {"temperature", plan.temperature},
               {"seed", plan.seed},
               {"ignore_eos", plan.ignore_eos},
               {"goals", goals_json(plan.goals)},
               {"interrupted", outcome.is_interrupted},
               {"levels", Json::array()}};
  for (const LevelRecord& level : outcome.levels) {
    Json figures = level_json(level, figures_of(level, plan.goals));
    figures["requests"] = Json::array();
    for (const AnswerRecord& request : level.requests) figures["requests"].push_back(request_json(request));
    json["levels"].push_back(std::move(figures));
  }
  return json;
}

std::string load_test_text(const LoadTestPlan& plan, const LoadTestOutcome& outcome) {
  std::string text =
      fmt::format("{} at {}, {} prompts, at most {} tokens each, temperature {}\n\n", outcome.model,
                  plan.server.text(), plan.prompts.size(), plan.max_tokens, plan.temperature);
  for (const LevelRecord& level : outcome.levels)
    text += level_text(level, figures_of(level, plan.goals), plan.goals);
  if (outcome.levels.size() < 2) return text;
  text += fmt::format("{:<28} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "", "tok/s", "req/s", "TTFT p50", "ITL mean",
                      "E2EL p50");
  for (const LevelRecord& level : outcome.levels) {
    const LevelFigures figures = figures_of(level, plan.goals);
    text += fmt::format("{:<28} {:>9.1f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n", level.level.name(),
                        figures.output_rate, figures.request_rate, figures.ttft.p50,
                        figures.token_latency.mean, figures.e2e.p50);
  }
  return text;
}

}  // namespace outrider
