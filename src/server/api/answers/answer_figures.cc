// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/answer_figures.h"

#include <algorithm>
#include <span>

#include "server/api/json_object.h"

namespace outrider {
namespace {

// With figures as values.
class FigureObject : public JsonObject {
 public:
  using JsonObject::JsonObject;

  void ratio(std::string_view name, double part, double whole) {
    whole > 0 ? append_json_rounded(key(name), part / whole) : void(key(name) += "null");
  }
  void milliseconds(std::string_view name, double value) { append_json_rounded(key(name), value); }
  void integers(std::string_view name, std::span<const int64_t> values) {
    append_json_integers(key(name), values);
  }
};

constexpr double kMillisecondsPerSecond = 1000.0;

void append_speculation(std::string& out, const ChoiceFigures& figures, const SpeculationStats& stats) {
  int64_t steps = 0;
  for (const int64_t count : figures.acceptance_histogram) steps += count;
  if (stats.drafted == 0 && steps == 0) {
    out += "null";
    return;
  }
  FigureObject object(out);
  object.ratio("mean_acceptance_length", static_cast<double>(steps + stats.accepted),
               static_cast<double>(steps));
  object.ratio("draft_acceptance_rate", static_cast<double>(stats.accepted),
               static_cast<double>(stats.drafted));
  object.integers("acceptance_histogram", figures.acceptance_histogram);
  object.integer("num_spec_steps", steps);
  object.integer("num_accepted_draft_tokens", stats.accepted);
  object.integer("num_draft_tokens", stats.drafted);
  object.integer("num_spec_tokens", static_cast<int64_t>(stats.drafted_per_position.size()));
  object.text("drafter", stats.method);
  object.flag("lossless", stats.lossless);
  object.integer("num_steps", stats.steps);
  object.integer("draft_failures", stats.draft_failures);
  object.integers("drafted_per_position", stats.drafted_per_position);
  object.integers("accepted_per_position", stats.accepted_per_position);
  FigureObject time(object.key("time_ms"));
  time.milliseconds("draft", stats.draft_ms);
  time.milliseconds("verify", stats.verify_ms);
}

}  // namespace

void ChoiceFigures::add(const ChoiceDelta& delta) {
  completion_tokens += static_cast<int64_t>(delta.tokens.size());
  if (delta.completion) cached_tokens = delta.completion->cached_tokens;
  const auto is_plain = [](TokenOrigin origin) { return origin == TokenOrigin::kPlain; };
  if (std::all_of(delta.origins.begin(), delta.origins.end(), is_plain)) return;
  const auto accepted =
      static_cast<size_t>(std::count(delta.origins.begin(), delta.origins.end(), TokenOrigin::kAccepted));
  if (acceptance_histogram.size() <= accepted) acceptance_histogram.resize(accepted + 1);
  ++acceptance_histogram[accepted];
}

void append_usage(std::string& out, const Usage& usage) {
  FigureObject object(out);
  object.integer("prompt_tokens", usage.prompt_tokens);
  object.integer("completion_tokens", usage.completion_tokens);
  object.integer("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  JsonObject details(object.key("prompt_tokens_details"));
  details.integer("cached_tokens", usage.cached_tokens);
}

namespace {

void append_metrics(std::string& out, const ChoiceFigures& figures, const Completion& completion) {
  const auto tokens = static_cast<double>(figures.completion_tokens);
  FigureObject metrics(out);
  metrics.milliseconds("time_to_first_token_ms", completion.first_token_ms);
  metrics.milliseconds("generation_time_ms", completion.decode_ms);
  metrics.milliseconds("queue_time_ms", completion.queue_ms);
  metrics.ratio("mean_itl_ms", completion.decode_ms, tokens - 1);
  metrics.ratio("tokens_per_second", tokens * kMillisecondsPerSecond,
                completion.prompt_ms + completion.decode_ms);
  append_speculation(metrics.key("speculative_decoding"), figures, completion.speculation);
}

void append_timings(std::string& out, const ChoiceFigures& figures, const Completion& completion) {
  const auto tokens = static_cast<double>(figures.completion_tokens);
  const double computed = static_cast<double>(figures.prompt_tokens - figures.cached_tokens);
  FigureObject timings(out);
  timings.integer("cache_n", figures.cached_tokens);
  timings.integer("prompt_n", figures.prompt_tokens - figures.cached_tokens);
  timings.milliseconds("prompt_ms", completion.prompt_ms);
  timings.ratio("prompt_per_token_ms", completion.prompt_ms, computed);
  timings.ratio("prompt_per_second", computed * kMillisecondsPerSecond, completion.prompt_ms);
  timings.integer("predicted_n", figures.completion_tokens);
  timings.milliseconds("predicted_ms", completion.decode_ms);
  timings.ratio("predicted_per_token_ms", completion.decode_ms, tokens);
  timings.ratio("predicted_per_second", tokens * kMillisecondsPerSecond, completion.decode_ms);
  if (completion.speculation.drafted > 0) {
    timings.integer("draft_n", completion.speculation.drafted);
    timings.integer("draft_n_accepted", completion.speculation.accepted);
  }
}

}  // namespace

void append_figures(std::string& out, const ChoiceFigures& figures, const Completion& completion) {
  out += ",\"metrics\":";
  append_metrics(out, figures, completion);
  out += ",\"timings\":";
  append_timings(out, figures, completion);
}

}  // namespace outrider
