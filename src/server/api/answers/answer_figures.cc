// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/answer_figures.h"

#include <algorithm>
#include <optional>

namespace outrider {
namespace {

constexpr double kMillisecondsPerSecond = 1000.0;

// nullopt: `whole` is none.
std::optional<double> ratio(double part, double whole) {
  return whole > 0 ? std::optional(rounded(part / whole)) : std::nullopt;
}

void write_speculation(JsonWriter& json, const ChoiceFigures& figures, const SpeculationStats& stats) {
  int64_t steps = 0;
  for (const int64_t count : figures.acceptance_histogram) steps += count;
  if (stats.drafted == 0 && steps == 0) {
    json.null();
    return;
  }
  const auto accepted = static_cast<double>(stats.accepted);
  json.begin_object();
  json.member("mean_acceptance_length",
              ratio(static_cast<double>(steps + stats.accepted), static_cast<double>(steps)));
  json.member("draft_acceptance_rate", ratio(accepted, static_cast<double>(stats.drafted)));
  json.member("acceptance_histogram", figures.acceptance_histogram);
  json.member("num_spec_steps", steps);
  json.member("num_accepted_draft_tokens", stats.accepted);
  json.member("num_draft_tokens", stats.drafted);
  json.member("num_spec_tokens", stats.drafted_per_position.size());
  json.member("drafter", stats.method);
  json.member("lossless", stats.lossless);
  json.member("num_steps", stats.steps);
  json.member("draft_failures", stats.draft_failures);
  json.member("drafted_per_position", stats.drafted_per_position);
  json.member("accepted_per_position", stats.accepted_per_position);
  json.key("time_ms").begin_object();
  json.member("draft", rounded(stats.draft_ms)).member("verify", rounded(stats.verify_ms));
  json.end_object().end_object();
}

}  // namespace

void ChoiceFigures::add(const ChoiceDelta& delta) {
  completion_tokens += static_cast<int64_t>(delta.tokens.size());
  if (delta.completion) {
    cached_tokens = delta.completion->cached_tokens;
    accepted_prediction_tokens = delta.completion->accepted_prediction_tokens;
    rejected_prediction_tokens = delta.completion->rejected_prediction_tokens;
  }
  const auto is_plain = [](TokenOrigin origin) { return origin == TokenOrigin::kPlain; };
  if (std::all_of(delta.origins.begin(), delta.origins.end(), is_plain)) return;
  const auto accepted =
      static_cast<size_t>(std::count(delta.origins.begin(), delta.origins.end(), TokenOrigin::kAccepted));
  if (acceptance_histogram.size() <= accepted) acceptance_histogram.resize(accepted + 1);
  ++acceptance_histogram[accepted];
}

void write_usage(JsonWriter& json, const Usage& usage) {
  json.begin_object();
  json.member("prompt_tokens", usage.prompt_tokens);
  json.member("completion_tokens", usage.completion_tokens);
  json.member("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json.key("prompt_tokens_details").begin_object().member("cached_tokens", usage.cached_tokens).end_object();
  if (usage.has_prediction) {
    json.key("completion_tokens_details").begin_object();
    write_prediction_counts(json, usage);
    json.end_object();
  }
  json.end_object();
}

namespace {

void write_metrics(JsonWriter& json, const ChoiceFigures& figures, const Completion& completion) {
  const auto tokens = static_cast<double>(figures.completion_tokens);
  json.begin_object();
  json.member("time_to_first_token_ms", rounded(completion.first_token_ms));
  json.member("generation_time_ms", rounded(completion.decode_ms));
  json.member("queue_time_ms", rounded(completion.queue_ms));
  json.member("mean_itl_ms", ratio(completion.decode_ms, tokens - 1));
  json.member("tokens_per_second",
              ratio(tokens * kMillisecondsPerSecond, completion.prompt_ms + completion.decode_ms));
  json.key("speculative_decoding");
  write_speculation(json, figures, completion.speculation);
  json.end_object();
}

void write_timings(JsonWriter& json, const ChoiceFigures& figures, const Completion& completion) {
  const auto tokens = static_cast<double>(figures.completion_tokens);
  const int64_t computed = figures.prompt_tokens - figures.cached_tokens;
  json.begin_object();
  json.member("cache_n", figures.cached_tokens);
  json.member("prompt_n", computed);
  json.member("prompt_ms", rounded(completion.prompt_ms));
  json.member("prompt_per_token_ms", ratio(completion.prompt_ms, static_cast<double>(computed)));
  json.member("prompt_per_second",
              ratio(static_cast<double>(computed) * kMillisecondsPerSecond, completion.prompt_ms));
  json.member("predicted_n", figures.completion_tokens);
  json.member("predicted_ms", rounded(completion.decode_ms));
  json.member("predicted_per_token_ms", ratio(completion.decode_ms, tokens));
  json.member("predicted_per_second", ratio(tokens * kMillisecondsPerSecond, completion.decode_ms));
  if (completion.speculation.drafted > 0) {
    json.member("draft_n", completion.speculation.drafted);
    json.member("draft_n_accepted", completion.speculation.accepted);
  }
  json.end_object();
}

}  // namespace

void write_figures(JsonWriter& json, const ChoiceFigures& figures, const Completion& completion) {
  json.key("metrics");
  write_metrics(json, figures, completion);
  json.key("timings");
  write_timings(json, figures, completion);
}

}  // namespace outrider
