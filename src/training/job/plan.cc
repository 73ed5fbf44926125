// SPDX-License-Identifier: Apache-2.0
#include "training/job/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "training/core/progress.h"

namespace outrider::training {
namespace {

constexpr double kMostTokens = 36e6;  // of training; lengths beyond were not measured
constexpr double kFill = 0.9;         // of a batch that is text; the rest is padding
constexpr double kMostPasses = 5.0;   // over the text
constexpr double kPassesOfSteps = 2.0;
constexpr int64_t kLeastPrompts = 48;     // some of which are held out
constexpr int64_t kEvaluations = 4;       // in the training, where its time allows them
constexpr double kEvaluationShare = 0.2;  // of the hours, at most, unless one takes longer
constexpr double kCheckpointSeconds = 240.0;
constexpr int kRankings = 4;  // of trees, in the first and the last evaluation
constexpr int kVariants = 3;  // of the finished head: 16, 8 and 4 bits

struct MeasuredLengths {
  double tokens;  // of training
  DraftLengths lengths;
};

// lab/2026-11-27_head_on_cpu.md and lab/2026-11-27_training.md; before the first of them a head is of no use.
constexpr std::array<MeasuredLengths, 8> kMeasured = {{{0.1e6, {1.0, 1.0}},
                                                       {0.8e6, {1.38, 1.81}},
                                                       {2.0e6, {1.56, 2.02}},
                                                       {3.4e6, {1.63, 2.18}},
                                                       {4.7e6, {1.65, 2.20}},
                                                       {12.8e6, {1.91, 2.52}},
                                                       {15.0e6, {2.03, 2.72}},
                                                       {35.7e6, {2.18, 2.91}}}};

double mean_step_s(const JobRates& rates, const JobSizes& sizes) {
  const double growing = (rates.first_step_s + rates.last_step_s) / 2.0;
  return sizes.growth * growing + (1.0 - sizes.growth) * rates.last_step_s;
}

// Seconds of a prompt: until it is answered, and in one pass of training over it.
double writing_s(const JobRates& rates, const JobSizes& sizes) {
  return sizes.prompt_tokens / rates.reading + (sizes.question_tokens + sizes.answer_tokens) / rates.writing;
}
double pass_s(const JobRates& rates, const JobSizes& sizes) {
  return sizes.window_tokens() / sizes.step_tokens() * mean_step_s(rates, sizes);
}

// Seconds of one decoding of all measured prompts.
double round_s(const JobRates& rates, const JobSizes& sizes) {
  return rates.open_s + static_cast<double>(sizes.measured_prompts * sizes.measured_tokens) * rates.token_s;
}

// A chain and a tree of every variant.
double measuring_s(const JobRates& rates, const JobSizes& sizes) {
  return 2 * kVariants * round_s(rates, sizes);
}

// Plain, in every step and as it pays, greedy; the first two sampled.
double proof_s(const JobRates& rates, const JobSizes& sizes) { return 5 * round_s(rates, sizes); }

// NGram once; a chain and a tree in each evaluation, several trees in the first and the last.
double evaluation_s(int64_t evaluations, const JobRates& rates, const JobSizes& sizes) {
  const int64_t trees = evaluations + (kRankings - 1) * std::min<int64_t>(2, evaluations);
  return static_cast<double>(1 + evaluations + trees) * round_s(rates, sizes);
}

int64_t evaluations_in(double hours, const JobRates& rates, const JobSizes& sizes) {
  int64_t count = kEvaluations;
  while (count > 1 && evaluation_s(count, rates, sizes) > kEvaluationShare * hours * 3600.0) --count;
  return count;
}

// Says when to evaluate and to write checkpoints.
HeadPlan finished_plan(int64_t prompts, int64_t steps, int64_t evaluations, double step_s) {
  steps = std::max<int64_t>(1, steps);
  const double checkpoint = kCheckpointSeconds / std::max(1e-3, step_s);
  return {.prompts = std::max(kLeastPrompts, prompts),
          .steps = steps,
          .evaluate_every = (steps + evaluations - 1) / evaluations,
          .checkpoint_every = std::clamp<int64_t>(std::llround(checkpoint), 5, 500)};
}

}  // namespace

double JobSizes::step_tokens() const { return kFill * static_cast<double>(batch_tokens); }

HeadPlan plan_for_hours(double hours, const JobRates& rates, const JobSizes& sizes) {
  const int64_t evaluations = evaluations_in(hours, rates, sizes);
  const double rest =
      measuring_s(rates, sizes) + proof_s(rates, sizes) + evaluation_s(evaluations, rates, sizes);
  const double left = std::max(0.0, hours * 3600.0 - rest);
  const double writing = writing_s(rates, sizes), pass = pass_s(rates, sizes);
  const double passes = std::clamp(writing / std::max(1e-9, pass), 1.0, kMostPasses);
  const double most = kMostTokens / (passes * sizes.window_tokens());
  const double prompts = std::min(left / (writing + passes * pass), most);
  const double steps = prompts * passes * sizes.window_tokens() / sizes.step_tokens();
  return finished_plan(std::llround(prompts), std::llround(steps), evaluations, mean_step_s(rates, sizes));
}

HeadPlan plan_for_steps(int64_t steps, const JobRates& rates, const JobSizes& sizes) {
  const double text = static_cast<double>(steps) * sizes.step_tokens() / kPassesOfSteps;
  return finished_plan(std::llround(text / sizes.window_tokens()), steps, kEvaluations,
                       mean_step_s(rates, sizes));
}

DraftLengths expected_lengths(double trained_tokens) {
  const double tokens = std::clamp(trained_tokens, kMeasured.front().tokens, kMeasured.back().tokens);
  size_t after = 1;
  while (after + 1 < kMeasured.size() && kMeasured[after].tokens < tokens) ++after;
  const MeasuredLengths &a = kMeasured[after - 1], &b = kMeasured[after];
  const double share = std::log(tokens / a.tokens) / std::log(b.tokens / a.tokens);
  return {std::lerp(a.lengths.chain, b.lengths.chain, share),
          std::lerp(a.lengths.tree, b.lengths.tree, share)};
}

double chain_speedup(double length, int64_t levels, double head_share) {
  return length / (1.0 + static_cast<double>(levels) * head_share);
}

JobForecast forecast(const HeadPlan& plan, const JobRates& rates, const JobSizes& sizes) {
  JobForecast found;
  const double text = static_cast<double>(plan.prompts) * sizes.window_tokens();
  found.trained_tokens = static_cast<double>(plan.steps) * sizes.step_tokens();
  found.passes = found.trained_tokens / text;
  found.text_s = static_cast<double>(plan.prompts) * writing_s(rates, sizes);
  const int64_t evaluations = (plan.steps + plan.evaluate_every - 1) / plan.evaluate_every;
  found.training_s =
      static_cast<double>(plan.steps) * mean_step_s(rates, sizes) + evaluation_s(evaluations, rates, sizes);
  found.measuring_s = measuring_s(rates, sizes);
  found.proof_s = proof_s(rates, sizes);
  found.lengths = expected_lengths(found.trained_tokens);
  found.speedup = std::max(1.0, chain_speedup(found.lengths.chain, sizes.levels, rates.head_share));
  return found;
}

std::string forecast_text(const HeadPlan& plan, const JobForecast& forecast) {
  return fmt::format(
      "text       {:>12}  {} prompts that the model answers\n"
      "training   {:>12}  {} steps, {:.2g} million tokens, {:.1f} passes over the text\n"
      "measuring  {:>12}  lengths of drafts in 16, 8 and 4 bits\n"
      "proof      {:>12}  identical text, and its speed\n"
      "total      {:>12}\n"
      "expected   {:.1f} tokens per pass in chains, {:.1f} in trees; text about {:.1f} times as fast\n"
      "           (an estimate, from heads of SmolLM2-135M on Spec-Bench)\n",
      format_duration(forecast.text_s), plan.prompts, format_duration(forecast.training_s), plan.steps,
      forecast.trained_tokens / 1e6, forecast.passes, format_duration(forecast.measuring_s),
      format_duration(forecast.proof_s), format_duration(forecast.total_s()), forecast.lengths.chain,
      forecast.lengths.tree, forecast.speedup);
}

}  // namespace outrider::training
