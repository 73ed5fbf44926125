// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/draft_stats.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

constexpr double kMaxSteps = 48.0;    // window of the fading means
constexpr double kMaxSurprise = 2.0;  // a time counts as at most this multiple of the expected one

}  // namespace

void DraftTime::learn(double new_ms) {
  steps = std::min(steps + 1.0, kMaxTimes);
  if (steps > 1.0) new_ms = std::min(new_ms, kMaxSurprise * ms);
  ms += (new_ms - ms) / steps;
}

void PrefillTime::learn(double new_ms, double new_tokens) {
  const double weight = line_.weight();
  // The only time so far counts as a stall where the new time, for about as many tokens, is far below it.
  if (weight == 1.0 && 2.0 * new_tokens >= line_.mean_count())
    line_.limit_mean_ms(2.0 * kMaxSurprise * new_ms);
  if (weight >= 1.0) {
    const double in_proportion = line_.mean_ms() * new_tokens / line_.mean_count();
    new_ms = std::min(new_ms, kMaxSurprise * std::max(ms_of(new_tokens), in_proportion));
  }
  line_.learn(new_tokens, new_ms);
}

void DraftStats::learn(double new_gain, double new_rows) {
  steps = std::min(steps + 1.0, kMaxSteps);
  const double surprise = new_gain - gain;
  variance += (surprise * surprise - variance) / (steps + kPriorSteps);
  gain += surprise / steps;
  rows += (new_rows - rows) / steps;
}

void DraftStats::learn_run(double new_steps) {
  runs = std::min(runs + 1.0, kMaxTimes);
  run_steps += (new_steps - run_steps) / (runs + 1.0);
}

void DraftStats::become_prior() {
  for (double* known : {&steps, &draft.steps, &runs}) *known = std::min(*known, kPriorSteps);
  prefill.become_prior();
}

void DraftStats::fade_into(const DraftStats& all) {
  constexpr double kFading = 0.03;
  if (steps <= kPriorSteps) return;
  steps += kFading * (kPriorSteps - steps);
  gain += kFading * (all.gain - gain);
  variance += kFading * (all.variance - variance);
  rows += kFading * (all.rows - rows);
}

void DraftForecast::change(const DraftStats& one, double prefill_tokens, double sign) {
  drafting += sign;
  tokens += sign * one.gain;
  rows += sign * one.rows;
  draft_ms += sign * (one.draft.ms + one.prefill.ms_of(prefill_tokens) / one.run_steps);
  steps += sign * one.steps;
  variance += sign * one.variance_of_gain();
}

DraftForecast DraftForecast::optimistic(double variance_of_tokens) const {
  DraftForecast best = *this;
  best.tokens += std::sqrt(std::max(0.0, variance_of_tokens));
  return best;
}

}  // namespace outrider
